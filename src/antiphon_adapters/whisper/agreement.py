"""Local agreement: what of a growing text can be said for good, because two guesses in a row say the same.

It compares texts and knows neither sound nor time. After Liu et al. 2020, "Low-Latency Sequence-to-Sequence Speech
Recognition and Translation by Partial Hypothesis Selection" (LocalAgreement-2).
"""

import re
import string
from collections.abc import Sequence
from itertools import takewhile

_MARKS = (
    re.escape(string.punctuation) + "\u00a1\u00ab\u00b7\u00bb\u00bf\u060c\u061b\u061f\u06d4\u0964\u0965\u2010-\u2027"
    "\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
"""Punctuation, as part of a character class."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters."""

_LETTER = rf"[^\s{_MARKS}{_UNSPACED}]"
_UNIT = re.compile(rf"\s*(?:[{_UNSPACED}]|(?:{_LETTER}|(?<=\S)['\u2019.,-](?={_LETTER}))+|[{_MARKS}])")
_MARK = re.compile(rf"\s*[{_MARKS}]")


class Agreement:
    """One utterance's text, from the first guess at its beginning to the last at all of it."""

    def __init__(self) -> None:
        self._guess: list[str] = []
        self._said: list[str] = []
        self._agreed = 0

    @property
    def agreed(self) -> int:
        """How many characters of the latest guess the one before it shares, in whole words."""
        return self._agreed

    def hear(self, guess: str) -> str:
        """Take the next guess; return the words that this one and the last agree on and that were not said yet.

        It ends in a word: what follows it, a full stop or a comma, is the least certain of all.
        """
        units = _units(guess)
        shared = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(units, self._guess, strict=False))]
        while shared and _MARK.fullmatch(shared[-1]):
            shared.pop()
        self._guess = units
        self._agreed = sum(map(len, shared))
        return self._say(shared)

    def settle(self, text: str) -> str:
        """Take the text of the whole utterance; return what of it follows on from what was said."""
        return self._say(_units(text))

    def _say(self, units: Sequence[str]) -> str:
        fresh = units[_shared_length(self._said, units) :]
        self._said += fresh
        return "".join(fresh)


def _units(text: str) -> list[str]:
    """Words and marks, each with the space before it: all of the text but for space at its end."""
    return _UNIT.findall(text)


def _shared_length(said: Sequence[str], heard: Sequence[str]) -> int:
    """How long the beginning of `heard` is that stands for all of `said`: the nearest to it by edits of words.

    Marks count for nothing: guesses differ in them far more often than in words.
    """
    if list(heard[: len(said)]) == said:
        return len(said)
    old = [_plain(unit) for unit in said if not _MARK.fullmatch(unit)]
    places = [place for place, unit in enumerate(heard) if not _MARK.fullmatch(unit)]
    new = [_plain(heard[place]) for place in places]
    costs = _edits(old, new)
    best = min(
        range(len(new) + 1), key=lambda count: (costs[count], new[:count][-1:] != old[-1:], abs(count - len(old)))
    )
    return places[best - 1] + 1 if best else 0


def _edits(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """How many edits lie between all of `old` and each beginning of `new` (Levenshtein)."""
    costs = list(range(len(new) + 1))
    for count, unit in enumerate(old, 1):
        row = [count]
        for place, other in enumerate(new):
            row.append(min(row[place] + 1, costs[place + 1] + 1, costs[place] + (unit != other)))
        costs = row
    return costs


def _plain(unit: str) -> str:
    return unit.strip().casefold()
