"""A text comes in pieces that espeak-ng can hold, and nothing of it is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.vocabulary.errors import InvalidRequest
from antiphon_adapters.piper.text import PIECE_BYTES, PIECE_DOTS, check_text, pieces

FOUR_BYTES = "\U0001d538"
"""A letter that takes four bytes in UTF-8."""

ABBREVIATION = re.compile(r"(?:\S ?\. ?)+")
"""What espeak-ng may take for one abbreviation: single signs, each with a full stop."""

awkward_texts = st.lists(
    st.sampled_from(
        ["a.", FOUR_BYTES + ".", ".", " ", "\n", "word", "1,", "你", "é", "x@y", "-", "[[", "\u200d", "Z", "!", "…"]
    ),
    max_size=400,
).map("".join)


def without_spaces(text: str) -> str:
    return re.sub(r"\s", "", text).replace("[", "(").replace("]", ")")


@given(awkward_texts)
def test_every_sign_is_kept_in_order(text: str) -> None:
    assert without_spaces("".join(pieces(text))) == without_spaces(text)


@given(awkward_texts)
def test_no_piece_is_longer_than_a_clause_may_be(text: str) -> None:
    assert all(len(piece.encode()) <= PIECE_BYTES for piece in pieces(text))


@given(awkward_texts)
def test_no_abbreviation_is_longer_than_its_buffer(text: str) -> None:
    for piece in pieces(text):
        for match in ABBREVIATION.finditer(piece):
            letters = re.sub(r"[. ]", "", match.group())
            assert len(letters.encode()) <= 80


@given(st.text(alphabet="ab你@." + FOUR_BYTES, max_size=3000))
def test_no_word_is_longer_than_its_buffer(text: str) -> None:
    assert all(len(word.encode()) <= 160 for piece in pieces(text) for word in piece.split())


def test_a_short_text_is_one_piece() -> None:
    assert list(pieces("One sentence. And another.")) == ["One sentence. And another."]


def test_the_lines_of_a_list_are_read_apart() -> None:
    assert list(pieces("Three fruits:\nApple\r\nBanana\n\n")) == ["Three fruits:", "Apple", "Banana"]


def test_a_wrapped_sentence_is_read_in_one_breath() -> None:
    assert list(pieces("The quick brown\nfox jumps.")) == ["The quick brown fox jumps."]


def test_a_blank_line_always_parts() -> None:
    assert list(pieces("the first\n\nthe second")) == ["the first", "the second"]


def test_a_long_paragraph_is_cut_after_a_sentence() -> None:
    paragraph = "A sentence of five words. " * 40 + "The end"
    cut = list(pieces(paragraph))
    assert len(cut) > 1
    assert all(piece.endswith("words.") for piece in cut[:-1])


def test_a_long_sentence_is_cut_after_a_clause() -> None:
    cut = list(pieces("and so it goes on, " * 60))
    assert len(cut) > 1
    assert all(piece.endswith("on,") for piece in cut)


def test_a_long_word_is_cut_after_a_sign_that_is_no_letter() -> None:
    (piece,) = pieces("https://example.org/some/rather/long/path/to/a/page")
    assert piece == "https://example.org/some/rather/ long/path/to/a/page"


def test_a_text_of_full_stops_alone_is_bounded_too() -> None:
    assert max(piece.count(".") for piece in pieces("." * 1000)) <= 2 * PIECE_DOTS


def test_square_brackets_are_no_phoneme_syntax() -> None:
    assert list(pieces("see [[1]]")) == ["see ((1))"]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_text(text)
    assert refusal.value.param == "input"
