"""Phonemes come in sequences that the graph can take, one piece of text at a time."""

import re

from antiphon.text.sentences import Piece
from antiphon_adapters.piper.phonemes import Utterance, utterances

STRESS = "\u02c8"


class Letters:
    """A speller whose phonemes are the text's letters and whose ids are their code points.

    As espeak-ng does, it takes a capital after a full stop for the beginning of a sentence.
    """

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def phonemize(self, text: str) -> list[list[str]]:
        self.spelled.append(text)
        return [list(sentence) for sentence in re.split(r"(?<=[.!]) (?=[A-Z])", text)]

    def phonemes_to_ids(self, phonemes: list[str]) -> list[int]:
        return [ord(phoneme) for phoneme in phonemes]


def spell(text: str, limit: int = 100, known: str = "ABCabcdefghijklmnopqrstuvwxyz ,.!" + STRESS) -> list[str]:
    """The sequences of one sentence as text; `limit` counts phonemes."""
    return [sound(it) for it in utterances(Letters(), known.__contains__, [Piece(text)], 2 * limit + 3)]


def sound(utterance: Utterance) -> str:
    return "".join(map(chr, utterance.ids))


def test_a_sentence_that_fits_stays_whole() -> None:
    assert spell("one two", 7) == ["one two"]


def test_a_long_sentence_is_cut_after_a_clause() -> None:
    assert spell("one two, three four", 14) == ["one two, ", "three four"]


def test_without_a_clause_it_is_cut_after_a_word() -> None:
    assert spell("one two three four", 12) == ["one two ", "three four"]


def test_without_a_word_it_is_cut_at_the_limit() -> None:
    assert spell("abcdefghijkl", 5) == ["abcde", "fghij", "kl"]


def test_a_part_that_makes_no_sound_is_dropped() -> None:
    assert spell("abcdefgh,,,,,,,,", 8) == ["abcdefgh"]


def test_signs_that_make_no_sound_are_no_utterance() -> None:
    assert spell(STRESS + ". , .") == []


def test_a_phoneme_that_the_voice_lacks_is_dropped() -> None:
    assert spell("axbx", known="ab") == ["ab"]


def test_a_stop_within_a_sentence_is_not_heard() -> None:
    assert spell("b. C. A came.") == ["b C A came."]


def test_other_marks_within_a_sentence_are() -> None:
    assert spell("ah! Aha.") == ["ah! Aha."]


def test_only_the_last_part_of_a_sentence_ends_it() -> None:
    sequences = utterances(Letters(), str.isascii, [Piece("one two three four"), Piece("five")], 2 * 12 + 3)
    assert [(sound(it), it.ends) for it in sequences] == [("one two ", False), ("three four", True), ("five", True)]


def test_a_piece_that_goes_on_ends_nothing() -> None:
    sequences = utterances(Letters(), str.isascii, [Piece("one,", ends=False), Piece("two")], 100)
    assert [(sound(it), it.ends) for it in sequences] == [("one,", False), ("two", True)]


def test_no_more_is_spelled_than_was_asked_for() -> None:
    speller = Letters()
    sequences = utterances(speller, str.isalpha, map(Piece, ("One", "Two", "Three")), 100)
    next(sequences)
    assert speller.spelled == ["One"]
