"""A sentence comes in pieces that espeak-ng can hold, and nothing of it is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.vocabulary.errors import InvalidRequest
from antiphon_adapters.piper.text import PIECE_BYTES, PIECE_DOTS, check_text, spellable

FOUR_BYTES = "\U0001d538"
"""A letter that takes four bytes in UTF-8."""

ABBREVIATION = re.compile(r"(?:\S ?\. ?)+")
"""What espeak-ng may take for one abbreviation: single signs, each with a full stop."""

awkward_texts = st.lists(
    st.sampled_from(
        ["a.", FOUR_BYTES + ".", ".", " ", "\n", "word", "1,", "你", "é", "x@y", "-", "[[", "\u200d", "Z", "!"]
    ),
    max_size=400,
).map("".join)


def without_spaces(text: str) -> str:
    """As it is spelled, too: an ellipsis is a comma, square brackets are round."""
    return re.sub(r"\s", "", re.sub(r"\.{3,}(?=[\s\w]|$)", ",", text)).replace("[", "(").replace("]", ")")


@given(awkward_texts)
def test_every_sign_is_kept_in_order(text: str) -> None:
    assert without_spaces("".join(spellable(text))) == without_spaces(text)


@given(awkward_texts)
def test_no_piece_is_longer_than_a_clause_may_be(text: str) -> None:
    assert all(len(piece.encode()) <= PIECE_BYTES for piece in spellable(text))


@given(awkward_texts)
def test_no_abbreviation_is_longer_than_its_buffer(text: str) -> None:
    for piece in spellable(text):
        for match in ABBREVIATION.finditer(piece):
            letters = re.sub(r"[. ]", "", match.group())
            assert len(letters.encode()) <= 80


@given(st.text(alphabet="ab你@." + FOUR_BYTES, max_size=3000))
def test_no_word_is_longer_than_its_buffer(text: str) -> None:
    assert all(len(word.encode()) <= 160 for piece in spellable(text) for word in piece.split())


def test_a_short_sentence_is_one_piece() -> None:
    assert list(spellable("One sentence, of two clauses.")) == ["One sentence, of two clauses."]


def test_a_long_one_is_cut_between_words() -> None:
    cut = list(spellable("and so it goes on, " * 60))
    assert len(cut) > 1
    assert " ".join(cut) == "and so it goes on, " * 59 + "and so it goes on,"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Wait... what?", "Wait, what?"),
        ("Well … no.", "Well , no."),
        ("He left...", "He left,"),
        ("Well…no", "Well, no"),
        ("...!?", "...!?"),
        ("1. First item.", "1, First item."),
        ("(12) Twelfth.", "12, Twelfth."),
        ("1.", "1."),
        ("1.5 litres", "1.5 litres"),
        ("2020) and so on", "2020) and so on"),
    ],
)
def test_signs_are_read_as_they_are_meant(text: str, read: str) -> None:
    assert list(spellable(text)) == [read]


def test_a_long_word_is_cut_after_a_sign_that_is_no_letter() -> None:
    (piece,) = spellable("https://example.org/some/rather/long/path/to/a/page")
    assert piece == "https://example.org/some/rather/ long/path/to/a/page"


def test_a_text_of_full_stops_alone_is_bounded_too() -> None:
    assert max(piece.count(".") for piece in spellable(". " * 1000)) <= 2 * PIECE_DOTS


def test_square_brackets_are_no_phoneme_syntax() -> None:
    assert list(spellable("see [[1]]")) == ["see ((1))"]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_text(text)
    assert refusal.value.param == "input"
