"""Turns sentences into the phoneme id sequences that a voice's graph takes, one by one. It knows no audio."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.text.sentences import Piece
from antiphon_adapters.piper.text import spellable

MAX_IDS = 600
"""The longest sequence for one run of the graph: about 15 s of speech at speed 1. Memory grows with it, and so does the
time per second of speech (measured: 0.12 of real time for 5 s, 0.20 for 40 s)."""

_CLAUSE_MARKS = frozenset(",;:")
_SPOKEN = frozenset({"Ll", "Lu", "Lo", "Nd"})
"""Unicode categories of phonemes that sound; stress and length marks are Lm, punctuation is P."""


class Speller(Protocol):
    """What piper-tts's `PiperVoice` offers for spelling; both calls may come from any thread."""

    def phonemize(self, text: str) -> list[list[str]]:
        """The phonemes of each sentence."""
        ...

    def phonemes_to_ids(self, phonemes: list[str]) -> list[int]:
        """Ids, padded and framed as the graph expects."""
        ...


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one run of the graph speaks: its ids, and whether a sentence ends with it."""

    ids: list[int]
    ends: bool


def utterances(
    speller: Speller, known: Callable[[str], bool], sentences: Iterable[Piece], max_ids: int
) -> Iterator[Utterance]:
    """Yield the id sequence of each piece of a text, cut where it is too long; nothing for what cannot be spoken.

    `known` tells whether the voice has a phoneme: piper-tts logs a warning for each that it lacks, so those are
    dropped before. Only one piece of the text is spelled ahead of what was asked for.
    """
    for piece in sentences:
        phonemes = [phoneme for phoneme in _spelled(speller, piece.text) if known(phoneme)]
        parts = [part for part in _parts(phonemes, (max_ids - 3) // 2) if _sounds(part)]
        for number, part in enumerate(parts, 1):
            yield Utterance(speller.phonemes_to_ids(part), ends=piece.ends and number == len(parts))


def _spelled(speller: Speller, sentence: str) -> list[str]:
    """The phonemes of one sentence, whatever espeak-ng takes for several: to it, "Dr. Smith" is two."""
    phonemes: list[str] = []
    for text in spellable(sentence):
        for part in filter(None, speller.phonemize(text)):
            if phonemes[-1:] == ["."]:
                phonemes.pop()
            if phonemes and phonemes[-1] != " ":
                phonemes.append(" ")
            phonemes += part
    return phonemes


def _sounds(phonemes: Sequence[str]) -> bool:
    return any(unicodedata.category(phoneme[0]) in _SPOKEN for phoneme in phonemes)


def _parts(phonemes: Sequence[str], limit: int) -> Iterator[list[str]]:
    """Cut after the last clause in the second half of the limit, else after the last word, else at the limit."""
    start = 0
    while len(phonemes) - start > limit:
        places = range(start + limit, start + limit // 2, -1)
        spaces = [place for place in places if phonemes[place - 1] == " "]
        clauses = [place for place in spaces if phonemes[place - 2] in _CLAUSE_MARKS]
        cut = (clauses or spaces or [start + limit])[0]
        yield list(phonemes[start:cut])
        start = cut
    if start < len(phonemes):
        yield list(phonemes[start:])
