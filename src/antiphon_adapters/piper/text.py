"""Cuts a text into pieces that espeak-ng can take. It knows no phonemes and never changes what is to be read.

espeak-ng holds what it reads in fixed buffers: 800 bytes a clause, 160 a word, 80 for the letters of an abbreviation
such as "u.s.a.". Beyond the first two it drops characters; beyond the last it overwrites its stack, and at a hundred
letters the process dies (`CheckDottedAbbrev`, seen with piper-tts 1.8.0). So it is only given what fits all three.
"""

import re
from collections.abc import Iterator, Sequence
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
_SENTENCE_ENDS = tuple(".!?。！？…")  # noqa: RUF001 (Chinese and Japanese marks are meant)
_CLAUSE_ENDS = (*_SENTENCE_ENDS, *",;:、，；：—")  # noqa: RUF001 (the same)

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


def pieces(text: str) -> Iterator[str]:
    """Yield the text in order, in pieces that end at sentences where that is possible. Time: linear in the text."""
    for paragraph in _paragraphs(text):
        yield from _pieces(paragraph.translate(_PLAIN))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield what is read in one breath: a line, and those after it that go on in lower case (a wrapped sentence)."""
    held: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if held and not line[:1].islower():
            yield " ".join(held)
            held = []
        if line:
            held.append(line)
    if held:
        yield " ".join(held)


def _pieces(paragraph: str) -> Iterator[str]:
    held: list[_Word] = []
    size = dots = 0
    for word in _words(paragraph):
        while held and (size + word.size > PIECE_BYTES or dots + word.dots > PIECE_DOTS):
            end = _break_after(held, _SENTENCE_ENDS) or _break_after(held, _CLAUSE_ENDS) or len(held)
            yield " ".join(part.text for part in held[:end])
            held = held[end:]
            size, dots = sum(part.size for part in held), sum(part.dots for part in held)
        held.append(word)
        size, dots = size + word.size, dots + word.dots
    if held:
        yield " ".join(part.text for part in held)


def _break_after(held: Sequence[_Word], marks: tuple[str, ...]) -> int:
    """How many words run up to the last one that ends in one of `marks`; 0 when none does."""
    return next((place for place in range(len(held), 0, -1) if held[place - 1].text.endswith(marks)), 0)


def _words(paragraph: str) -> Iterator[_Word]:
    """Yield the words; one that is too long comes in parts, cut after its last sign that is no letter or digit."""
    for match in _WORD.finditer(paragraph):
        start, end = match.span()
        longest = DOTTED_WORD_CHARS if "." in match.group() else WORD_CHARS
        while end - start > longest:
            limit = start + longest
            places = range(limit, start + longest // 2, -1)
            cut = next((place for place in places if not paragraph[place - 1].isalnum()), limit)
            yield _word(paragraph[start:cut])
            start = cut
        yield _word(paragraph[start:end])


def _word(text: str) -> _Word:
    return _Word(text, size=len(text.encode("utf-8")) + 1, dots=text.count(".") + text.count("…"))
