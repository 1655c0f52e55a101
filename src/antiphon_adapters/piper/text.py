"""Cuts a sentence into pieces that espeak-ng can take. It knows no phonemes, and drops nothing that is to be read.

espeak-ng holds what it reads in fixed buffers: 800 bytes a clause, 160 a word, 80 for the letters of an abbreviation
such as "u.s.a.". Beyond the first two it drops characters; beyond the last it overwrites its stack, and at a hundred
letters the process dies (`CheckDottedAbbrev`, seen with piper-tts 1.8.0). So it is only given what fits all three.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.vocabulary.errors import InvalidRequest

PIECE_BYTES = 600
"""The longest piece, in UTF-8 bytes."""

PIECE_DOTS = 16
"""The most full stops in a piece: an abbreviation of so many letters, at four bytes each, fits its buffer."""

WORD_CHARS = 40
"""The longest run without a space, in characters: at four bytes each, espeak-ng's word buffer."""

DOTTED_WORD_CHARS = 2 * PIECE_DOTS
"""The same for a run with a full stop in it, so that one word cannot be a longer abbreviation either."""

_WORD = re.compile(r"\S+")
_ELLIPSIS = re.compile(r"(?:\.{3,}+|…++)(?=[\s\w]|$)")
"""espeak-ng glues the word before it to the one after; a comma is the pause that is meant."""
_LIST_MARK = re.compile(r"\(?(\d{1,3})[.)]\s+(?=\S)")
"""The number of an item, in front of it; with the full stop it would be a sentence, and without it a part of one."""

# Square brackets would start piper's raw phoneme syntax, which a plain text does not mean; controls are no text.
_PLAIN = {**dict.fromkeys([*range(32), *range(127, 160)], " "), ord("["): "(", ord("]"): ")"}


@dataclass(frozen=True, slots=True)
class _Word:
    """A run without a space. Units: `size` in bytes, with the space after it; `dots` counts full stops."""

    text: str
    size: int
    dots: int


def check_text(text: str) -> None:
    """Refuse what is no text at all. Raises InvalidRequest (param "input")."""
    if "\0" in text:
        raise InvalidRequest("input must not hold a NUL character", param="input")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidRequest("input must not hold half of a surrogate pair", param="input") from exc


def spellable(sentence: str) -> Iterator[str]:
    """Yield a sentence in order, in pieces of whole words that espeak-ng can hold; most are one. Time: linear."""
    held: list[str] = []
    size = dots = 0
    for word in _words(_read_aloud(sentence)):
        if held and (size + word.size > PIECE_BYTES or dots + word.dots > PIECE_DOTS):
            yield " ".join(held)
            held, size, dots = [], 0, 0
        held.append(word.text)
        size, dots = size + word.size, dots + word.dots
    if held:
        yield " ".join(held)


def _read_aloud(sentence: str) -> str:
    """The sentence with the signs that espeak-ng reads as they are meant."""
    mark = _LIST_MARK.match(sentence)
    if mark:
        sentence = f"{mark[1]}, {sentence[mark.end() :]}"
    return _ELLIPSIS.sub(", ", sentence).translate(_PLAIN)


def _words(sentence: str) -> Iterator[_Word]:
    """Yield the words; one that is too long comes in parts, cut after its last sign that is no letter or digit."""
    for match in _WORD.finditer(sentence):
        start, end = match.span()
        longest = DOTTED_WORD_CHARS if "." in match.group() else WORD_CHARS
        while end - start > longest:
            limit = start + longest
            places = range(limit, start + longest // 2, -1)
            cut = next((place for place in places if not sentence[place - 1].isalnum()), limit)
            yield _word(sentence[start:cut])
            start = cut
        yield _word(sentence[start:end])


def _word(text: str) -> _Word:
    return _Word(text, size=len(text.encode("utf-8")) + 1, dots=text.count("."))
