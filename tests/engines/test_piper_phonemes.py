"""Phonemes come in sequences that the graph can take, one piece of text at a time."""

from antiphon_adapters.piper.phonemes import utterances

STRESS = "\u02c8"


class Letters:
    """A speller whose phonemes are the text's letters and whose ids are their code points."""

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def phonemize(self, text: str) -> list[list[str]]:
        self.spelled.append(text)
        return [list(text)]

    def phonemes_to_ids(self, phonemes: list[str]) -> list[int]:
        return [ord(phoneme) for phoneme in phonemes]


def spell(text: str, limit: int, known: str = "abcdefghijklmnopqrstuvwxyz ,." + STRESS) -> list[str]:
    """The sequences as text; `limit` counts phonemes."""
    sequences = utterances(Letters(), known.__contains__, text, 2 * limit + 3)
    return ["".join(map(chr, ids)) for ids in sequences]


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
    assert spell(STRESS + ". , .", 100) == []


def test_a_phoneme_that_the_voice_lacks_is_dropped() -> None:
    assert spell("axbx", 100, known="ab") == ["ab"]


def test_no_more_is_spelled_than_was_asked_for() -> None:
    speller = Letters()
    sequences = utterances(speller, str.isalpha, "One\nTwo\nThree", 100)
    next(sequences)
    assert speller.spelled == ["One"]
