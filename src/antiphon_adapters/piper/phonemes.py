"""Turns a text into the phoneme id sequences that a voice's graph takes, one after another. It knows no audio."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from antiphon_adapters.piper.text import pieces

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


def utterances(speller: Speller, known: Callable[[str], bool], text: str, max_ids: int) -> Iterator[list[int]]:
    """Yield the id sequence of each sentence, cut where it is too long; nothing for what cannot be spoken.

    `known` tells whether the voice has a phoneme: piper-tts logs a warning for each that it lacks, so those are
    dropped before. Only one piece of the text is spelled ahead of what was asked for.
    """
    for piece in pieces(text):
        for sentence in speller.phonemize(piece):
            phonemes = [phoneme for phoneme in sentence if known(phoneme)]
            for part in _parts(phonemes, (max_ids - 3) // 2):
                if any(unicodedata.category(phoneme[0]) in _SPOKEN for phoneme in part):
                    yield speller.phonemes_to_ids(part)


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
