"""What an English text sounds like, word by word, as far as a dictionary tells. It hears nothing.

Numbers, years, ordinals, amounts and percentages are spelled out by inflect; what is written with hyphens or slashes is
several words; a word in capitals that the dictionary does not have is said letter by letter.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from antiphon.vocabulary.errors import InvalidRequest

MAX_WORD_CHARS = 500
"""The longest run without a space, in characters. Composing accents takes time that grows with the square of their
number: a letter with 100,000 of them would take half a minute, during which Python's lock is held."""

_NUMBER = re.compile(r"(?P<sign>[$£€])?(?P<digits>\d[\d,]*(\.\d+)?)(?P<ending>st|nd|rd|th|%)?")
_YEAR = re.compile(r"1[1-9]\d[1-9]|1[1-9][1-9]0|20[1-9]\d")
_CURRENCIES = {"$": "dollars", "£": "pounds", "€": "euros"}
_SIGNS = {"&": "and", "+": "plus", "=": "equals", "%": "percent", "@": "at"}
_PARTS = re.compile(r"[a-zà-ɏ]+(?:'[a-zà-ɏ]+)*'?|\d+|[&+=%@]", re.IGNORECASE)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "`": "'"})
_LONGEST_NUMBER = 36
"""inflect has names up to decillions."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as it is written, with its punctuation, and the words of the dictionary that it is said as."""

    text: str
    said: tuple[str, ...]


class Speller:
    """Spells texts; `knows` tells whether the dictionary has a word. Two threads need two: inflect keeps state."""

    def __init__(self, knows: Callable[[str], bool]) -> None:
        import inflect

        self._knows = knows
        self._inflect = inflect.engine()

    def spell(self, text: str) -> Iterator[SpokenWord]:
        """Yield the words of a text in order. What has no sound, such as a dash, is left out; unknown words are not.

        Lazy, so that the caller can stop at its limit. Raises InvalidRequest (param "text") for a word that is longer
        than `MAX_WORD_CHARS`.
        """
        for token in text.split():
            if len(token) > MAX_WORD_CHARS:
                told = f"a word of the text has {len(token)} characters; the limit is {MAX_WORD_CHARS}"
                raise InvalidRequest(told, param="text")
            if said := tuple(self._said(token)):
                yield SpokenWord(token, said)

    def _said(self, token: str) -> Iterator[str]:
        plain = unicodedata.normalize("NFC", token).translate(_QUOTES)
        core = plain.strip("".join(char for char in set(plain) if not _sounds(char)))
        if number := _NUMBER.fullmatch(core):
            yield from self._number(number)
            return
        if self._knows(core.casefold()):  # such as "e-mail" or "o'clock", before it is taken apart
            yield core.casefold()
            return
        for part in _PARTS.findall(core):
            yield from self._part(part)

    def _part(self, part: str) -> Iterator[str]:
        word = part.casefold()
        if part.isdigit():
            yield from self._named(part)
        elif part in _SIGNS:
            yield _SIGNS[part]
        elif self._knows(word):
            yield word
        elif self._knows(bare := word.strip("'")):
            yield bare
        elif len(bare) > 1 and part.isupper() and all(map(self._knows, bare)):
            yield from bare
        else:
            yield bare

    def _number(self, number: re.Match[str]) -> Iterator[str]:
        digits, ending = number["digits"], number["ending"]
        is_year = _YEAR.fullmatch(digits) and not number["sign"] and not ending
        if is_year:
            yield from ("oh" if word == "zero" else word for word in self._named(digits, group=2))
        else:
            yield from self._named(digits.replace(",", "") + (ending if ending and ending != "%" else ""))
        if ending == "%":
            yield "percent"
        if sign := number["sign"]:
            yield _CURRENCIES[sign]

    def _named(self, digits: str, group: int = 0) -> Iterator[str]:
        if len(digits) > _LONGEST_NUMBER:
            group = 1  # digit by digit
        name = str(self._inflect.number_to_words(digits, andword="", group=group))
        yield from re.findall(r"[a-z]+", name)


def _sounds(char: str) -> bool:
    return char.isalnum() or char in "$£€%&+=@'"
