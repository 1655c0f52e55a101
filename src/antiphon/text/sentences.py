"""Cuts a text into what is spoken at one go: its sentences, or parts of a long one. It knows no engine and no sound.

Where sentences end is sentencex's decision (docs/adr/0011). It gets a bounded piece of the text at a time, so the first
sentence of a book costs as little as that of a note, and a text that is built to be slow costs what any text does.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 240
"""The longest piece, in characters: about 15 seconds of speech. One that is drawn wide counts as three of them: a
Chinese character is a syllable, and takes as long as three letters."""

WINDOW = 600
"""How many characters sentencex sees at once; some of its rules take time that grows with the square of it."""

_WIDE = 3
_DEFAULT_LANGUAGE = "en"
_LONGEST_CLUSTER = 32
"""How many signs of one letter, such as the accents over it, are kept together."""

# sentencex takes a quotation or a bracket for one sentence, whatever is in it. It sees a space for each of these signs.
_UNQUOTED = str.maketrans(dict.fromkeys("\"'“”„‟‘’‚‛«»‹›()（）「」『』《》〈〉【】", " "))  # noqa: RUF001 (all meant)
_AFTER_STOP = re.compile(r"(?:[\"'”’»›)）」』》〉】]|\s+[»›](?=\s|$))*\s*")  # noqa: RUF001 (the same)

_LIST_MARK = re.compile(r"\s*\(?\d{1,3}[.)]\s*")
_LAST_WORD = re.compile(r"(\w{1,7})\.\s*$")
_BEFORE_NUMBERS = frozenset({"approx", "ch", "eq", "eqs", "figs", "pt", "sec", "sect", "ver", "vol", "vols"})
"""Words that end in a full stop before a number, and that sentencex does not know as such."""
_BEFORE_NAMES = {"fr": frozenset({"Dr", "M", "MM", "Me", "St"}), "nl": frozenset({"Mevr"}), "tr": frozenset({"Sn"})}
"""The same before a name, by language."""

_CLAUSE_ENDS = frozenset(",;:.!?…)–—،؛")  # noqa: RUF001 (the same)
"""Signs that end a clause where a space follows; inside a number or an address they end nothing."""
_WIDE_CLAUSE_ENDS = frozenset("、，；：。！？…—）」』")  # noqa: RUF001 (the same)
_JOINER = "\u200d"
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)


@dataclass(frozen=True, slots=True)
class Piece:
    """What is spoken at one go, without spaces around it; `ends` tells whether a sentence ends with it."""

    text: str
    ends: bool = True


def pieces(text: str, language: str | None = None) -> Iterator[Piece]:
    """Yield a text in order, in pieces of at most `LONGEST` characters; joined they hold all of it but the spaces.

    A line is read apart from the next, unless that goes on in lower case. A long sentence is cut after a clause, else
    after a word, else anywhere between two letters. `language` is an ISO 639-1 code, which chooses the abbreviations;
    None and an unknown one are as English. Lazy, and linear in the text.
    """
    for paragraph in _paragraphs(text):
        yield from _pieces(paragraph, language or _DEFAULT_LANGUAGE)


def _paragraphs(text: str) -> Iterator[str]:
    held: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if held and not line[:1].islower():
            yield " ".join(held)
            held = []
        if line:
            held.append(line)
    if held:
        yield " ".join(held)


def _pieces(paragraph: str, language: str) -> Iterator[Piece]:
    """Look at one window after another; what may go on behind a window is seen again, at the start of the next."""
    start = 0
    while start < len(paragraph):
        window = paragraph[start : start + WINDOW]
        start += len(window)
        *whole, last = _sentences(window, language)
        for sentence in whole:
            yield from _parts(sentence)
        if start >= len(paragraph):
            yield from _parts(last)
            return
        *parts, rest = _cut(last)
        yield from (Piece(part.strip(), ends=False) for part in parts if not part.isspace())
        start -= len(rest)


def _parts(sentence: str) -> Iterator[Piece]:
    parts = [part for text in _cut(sentence) if (part := text.strip())]
    for number, part in enumerate(parts, 1):
        yield Piece(part, ends=number == len(parts))


def _sentences(window: str, language: str) -> list[str]:
    """The sentences of a text, which are the text if they are joined; never none of a text that is not empty."""
    import sentencex

    found: list[str] = []
    unquoted = window.translate(_UNQUOTED)
    start = 0
    for boundary in sentencex.get_sentence_boundaries(language, unquoted):
        stop = len(unquoted[: boundary["end_index"]].rstrip())
        after = _AFTER_STOP.match(window, stop)
        end = after.end() if after else stop
        if end <= start:
            continue
        if found and _goes_on(found[-1], window[start:end], language):
            found[-1] += window[start:end]
        else:
            found.append(window[start:end])
        start = end
    if start < len(window):
        found.append(window[start:])
    return found


def _goes_on(sentence: str, following: str, language: str) -> bool:
    """Whether sentencex saw an end where there is none."""
    if _LIST_MARK.fullmatch(sentence):
        return True
    first = following[0]
    if first.islower():
        begun = next(filter(str.isalpha, sentence), "")
        return begun.isupper()  # who writes without capitals begins sentences like that
    if first == "と":  # Japanese: what was said, then that it was said
        return sentence.rstrip().endswith(("」", "』"))
    found = _LAST_WORD.search(sentence[-10:])
    word = found[1] if found else ""
    if first.isdigit():
        return word.casefold() in _BEFORE_NUMBERS
    if language == "de" and word.isdecimal():
        return len(word) <= 2  # an ordinal, which German writes like this; the noun after it has a capital
    return word in _BEFORE_NAMES.get(language, ())


def _cut(sentence: str) -> list[str]:
    """Cut what is longer than `LONGEST`; the parts joined are the sentence."""
    parts: list[str] = []
    start = 0
    while (limit := _reach(sentence, start)) < len(sentence):
        place = _place(sentence, start, limit)
        parts.append(sentence[start:place])
        start = place
    return [*parts, sentence[start:]]


def _reach(text: str, start: int) -> int:
    """Where a piece that begins at `start` ends at the latest."""
    room = LONGEST
    for place in range(start, len(text)):
        room -= _WIDE if unicodedata.east_asian_width(text[place]) in "WF" else 1
        if room < 0:
            return place
    return len(text)


def _place(text: str, start: int, limit: int) -> int:
    """The best place for a cut: after a clause in the second half, else after a word, else between two letters."""
    late, early = range(limit, start + (limit - start) // 2, -1), range(limit, start, -1)
    cluster = range(limit, max(start, limit - _LONGEST_CLUSTER), -1)
    clause = next((place for place in late if _ends_clause(text, place)), None)
    word = next((place for place in early if text[place - 1].isspace()), None)
    letter = next((place for place in cluster if not _is_inside_letter(text, place)), limit)
    return clause or word or letter


def _ends_clause(text: str, place: int) -> bool:
    if text[place - 1].isspace():
        return text[place - 2] in _CLAUSE_ENDS
    return text[place - 1] in _WIDE_CLAUSE_ENDS and text[place] not in _WIDE_CLAUSE_ENDS


def _is_inside_letter(text: str, place: int) -> bool:
    """Whether a cut here would part what is seen as one letter: accents, vowel signs, emoji of several signs."""
    before, after = text[place - 1], text[place]
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or ord(after) in _SKIN_TONES
        or (ord(before) in _FLAG_LETTERS and ord(after) in _FLAG_LETTERS)
    )
