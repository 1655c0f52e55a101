# ruff: noqa: RUF001 (signs of other scripts are meant)
"""A text is cut where its sentences end, a long sentence where one may breathe, and nothing of it is lost."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from antiphon.text.sentences import LONGEST, WINDOW, Piece, pieces

awkward_texts = st.lists(
    st.sampled_from(
        [
            *("a.", "b", " ", "\n", "\r\n", "word ", "Dr. ", "e.g.", "1.", "(2) ", "3.14", "!", "? ", "…", "...", ", "),
            *("“", "”", '"', "'", "(", ")", "«", "»", "「", "」", "你", "好。", "！", "、", "と", "हि", "।", "؟", "é"),
            *("e\u0301", "\u200d", "\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "x" * 100, "\x1f"),
        ]
    ),
    max_size=300,
).map("".join)

HOSTILE = (
    "a@",
    "1,",
    "a.",
    "a",
    "“",
    "'a' ",
    "(",
    "你好。",
    "你",
    "\U0001f600",
    "a\u0301",
    "\u0301",
    "a? b! ",
    "word, ",
)


def without_spaces(text: str) -> str:
    return "".join(text.split())


def cut(text: str, language: str | None = None) -> list[str]:
    return [piece.text for piece in pieces(text, language)]


def length(text: str) -> int:
    return sum(3 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


@given(awkward_texts, st.sampled_from(["en", "de", "zh", "ja", "hi", "xx", None]))
def test_every_sign_is_kept_in_order(text: str, language: str | None) -> None:
    assert without_spaces("".join(cut(text, language))) == without_spaces(text)


@given(awkward_texts)
def test_no_piece_is_empty_or_too_long(text: str) -> None:
    assert all(0 < length(piece) <= LONGEST for piece in cut(text))


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize(
    "sentences",
    [
        ("Dr. Smith lives on Elm St. in Boston.", "It was cold."),
        ("I met Mr. and Mrs. Jones, e.g. at No. 5.", "They left."),
        ("The U.S. Army came.", "It left."),
        ("He works for the U.S.", "Then he left."),
        ("Pi is 3.14 exactly.", "Yes."),
        ("It is 5 p.m. now.", "Come at 10:30 a.m. please."),
        ("We met at 5 p.m.", "Then we left."),
        ("Wait... what?", "Well … no."),
        ("He waited...", "Then he left."),
        ("J. R. R. Tolkien wrote it.", "G.K. Chesterton too."),
        ("See https://example.org/a.b?c=d.", "Then go."),
        ("Mail me at a.b@c.org.", "Thanks."),
        ("Version 2.0.1 is out.", "Get it!", "Really?!"),
        ("Fig. 3 shows it; cf. also p. 5.", "Vol. 2 too.", "Ch. 4 is short."),
        ("It rained on Mon. and Tue. all day.", "No."),
        ("i like it.", "it is good.", "is it?", "yes."),
        ("1. First item.", "2. Second item."),
        ("(1) One.", "(2) Two."),
    ],
)
def test_a_stop_ends_a_sentence_only_where_it_does(sentences: Sequence[str], language: str | None) -> None:
    assert cut(" ".join(sentences), language) == list(sentences)


@pytest.mark.parametrize(
    "sentences",
    [
        ('He said "Go."', "Then he left."),
        ("Is it?", "“Yes!” she said."),
        ("(It was late.)", "We left."),
        ("He left.", "(Then she came.)", "End."),
        ("“I left.", "You stayed.", "We all cried.”", "He ran."),
        ("She said 'I left.", "You stayed.'", "Then he ran."),
        ("« Je pars.", "Tu restes. »", "Il court."),
        ("“Left open.", "And on.", "And on."),
    ],
)
def test_quotes_and_brackets_stay_with_their_sentence(sentences: Sequence[str]) -> None:
    assert cut(" ".join(sentences)) == list(sentences)


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("zh", "你好。今天天气很好！你呢？", ("你好。", "今天天气很好！", "你呢？")),
        ("zh", "他说：“我走了。你留下。”然后走了。", ("他说：“我走了。", "你留下。”", "然后走了。")),
        ("en", "Hello.你好。Bye.", ("Hello.", "你好。", "Bye.")),
        ("ja", "「行こう。」と言った。終わり。", ("「行こう。」と言った。", "終わり。")),
        ("hi", "यह एक वाक्य है। यह दूसरा है।", ("यह एक वाक्य है।", "यह दूसरा है।")),
        ("ar", "هل أنت بخير؟ نعم.", ("هل أنت بخير؟", "نعم.")),
        (
            "de",
            "Dr. Uhl kam am 3. Mai, d. h. spät. Gut.",
            ("Dr. Uhl kam am 3. Mai, d. h. spät.", "Gut."),
        ),
        ("fr", "M. Dupont est là. Oui.", ("M. Dupont est là.", "Oui.")),
        ("nl", "Mevr. Bakker is er. Ja.", ("Mevr. Bakker is er.", "Ja.")),
    ],
)
def test_other_languages_have_their_own_stops(language: str, text: str, sentences: Sequence[str]) -> None:
    assert cut(text, language) == list(sentences)


def test_the_lines_of_a_list_are_read_apart() -> None:
    assert cut("Three fruits:\nApple\r\nBanana\n\n") == ["Three fruits:", "Apple", "Banana"]


def test_a_heading_is_read_apart() -> None:
    assert cut("Chapter One\nIt was dark.") == ["Chapter One", "It was dark."]


def test_a_wrapped_sentence_is_read_in_one_breath() -> None:
    assert cut("The quick brown\nfox jumps.") == ["The quick brown fox jumps."]


def test_a_blank_line_always_parts() -> None:
    assert cut("the first\n\nthe second") == ["the first", "the second"]


def test_a_long_sentence_is_cut_after_a_clause() -> None:
    parts = cut("and so it goes on, " * 60)
    assert len(parts) > 4
    assert all(part.endswith("on,") for part in parts)


def test_numbers_and_addresses_hold_no_clauses() -> None:
    (first, *_) = cut("it costs 1,000,000:00 at https://example.org/a,b;c " * 8)
    assert first.endswith(("it", "costs", "at", "1,000,000:00", "a,b;c"))


def test_without_a_clause_it_is_cut_after_a_word() -> None:
    parts = cut("the quick brown fox " * 40)
    assert len(parts) > 3
    assert {part.split()[-1] for part in parts} <= {"the", "quick", "brown", "fox"}


def test_chinese_is_cut_after_its_own_clauses() -> None:
    parts = cut("今天天气很好，" * 40)
    assert len(parts) > 3
    assert all(part.endswith("好，") for part in parts)


@pytest.mark.parametrize(
    "letter",
    ["e\u0301", "हि", "\U0001f44d\U0001f3fd", "\U0001f469\u200d\U0001f52c", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f"],
)
def test_a_long_word_is_never_cut_within_a_letter(letter: str) -> None:
    parts = cut(letter * 400)
    assert len(parts) > 1
    assert all(len(part) % len(letter) == 0 and part.startswith(letter) for part in parts)


def test_a_letter_of_a_thousand_accents_is_cut_all_the_same() -> None:
    assert len(cut("a" + "\u0301" * 1000)) > 4


def test_the_parts_of_a_sentence_say_that_it_goes_on() -> None:
    text = "It goes on, " * 30 + "and it ends. And one more."
    *parts, end, last = pieces(text)
    assert parts
    assert not any(part.ends for part in parts)
    assert end.ends
    assert last == Piece("And one more.", ends=True)


def test_a_sentence_longer_than_a_window_goes_on_across_it() -> None:
    parts = list(pieces("word " * WINDOW + "end. Next."))
    assert [part.text for part in parts if part.ends] == [parts[-2].text, "Next."]


def test_a_sentence_across_the_end_of_a_window_stays_whole() -> None:
    sentence = "A sentence of five words."
    assert set(cut(" ".join([sentence] * WINDOW))) == {sentence}


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_grows_with_the_text_and_no_faster(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:  # SEC-07
    seen: list[int] = []
    boundaries = sentencex.get_sentence_boundaries

    def counted(language: str, text: str) -> list[dict[str, Any]]:
        seen.append(len(text))
        return boundaries(language, text)

    monkeypatch.setattr(sentencex, "get_sentence_boundaries", counted)
    text = (unit * 20_000)[:20_000]

    next(pieces(text))
    assert sum(seen) <= WINDOW

    seen.clear()
    assert without_spaces("".join(cut(text))) == without_spaces(text)
    assert max(seen) <= WINDOW
    assert sum(seen) <= len(text) * WINDOW / (WINDOW - LONGEST) + WINDOW
