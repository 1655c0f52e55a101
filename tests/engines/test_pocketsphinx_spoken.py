"""What a text sounds like: punctuation is silent, numbers have names, and nothing is dropped that has a sound."""

import pytest

from antiphon.vocabulary.errors import InvalidRequest
from antiphon_adapters.pocketsphinx.spoken import MAX_WORD_CHARS, Speller, SpokenWord

KNOWN = {
    *("hello", "world", "it's", "the", "well", "known", "and", "percent", "dollars", "at", "e-mail", "nato", "naïve"),
    *"abcdefghijklmnopqrstuvwxyz",
}


@pytest.fixture(scope="module")
def speller() -> Speller:
    return Speller(KNOWN.__contains__)


def said(speller: Speller, text: str) -> str:
    return " ".join(word for spoken in speller.spell(text) for word in spoken.said)


def test_words_are_kept_as_they_are_written_beside_what_they_sound_like(speller: Speller) -> None:
    assert list(speller.spell("“Hello,” World — (the)…")) == [
        SpokenWord("“Hello,”", ("hello",)),
        SpokenWord("World", ("world",)),
        SpokenWord("(the)…", ("the",)),
    ]


@pytest.mark.parametrize("text", ["", "  \n", "— … ?!", "\u200b", "'"])
def test_what_has_no_sound_has_no_words(speller: Speller, text: str) -> None:
    assert list(speller.spell(text)) == []


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("It\u2019s 'hello'", "it's hello"),
        ("well-known", "well known"),
        ("hello/world", "hello world"),
        ("e-mail", "e-mail"),
        ("hello & world", "hello and world"),
        ("Na\u00efve", "naïve"),
        ("Nai\u0308ve", "naïve"),
        ("NATO", "nato"),
        ("HTTP", "h t t p"),
        ("USB3", "u s b three"),
        ("42", "forty two"),
        ("1,234", "one thousand two hundred thirty four"),
        ("3.14", "three point one four"),
        ("21st", "twenty first"),
        ("50%", "fifty percent"),
        ("$5", "five dollars"),
        ("1995", "nineteen ninety five"),
        ("1905.", "nineteen oh five"),
        ("1900", "one thousand nine hundred"),
        ("2000", "two thousand"),
        ("2024,", "twenty twenty four"),
        ("007", "seven"),
        ("10:30", "ten thirty"),
        ("hello@world", "hello at world"),
    ],
)
def test_a_text_is_said_as_people_say_it(speller: Speller, text: str, sound: str) -> None:
    assert said(speller, text) == sound


def test_an_unknown_word_stays_for_the_dictionary_to_miss(speller: Speller) -> None:
    assert said(speller, "Hello Zyxx!") == "hello zyxx"


def test_a_number_without_a_name_is_read_digit_by_digit(speller: Speller) -> None:
    assert said(speller, "1" * 50) == " ".join(["one"] * 50)


def test_the_longest_word_is_spelled_and_a_longer_one_is_refused_when_its_turn_comes(speller: Speller) -> None:
    longest = "n" + "\u0327\u0300" * ((MAX_WORD_CHARS - 1) // 2) + "a"
    words = speller.spell(f"hello {longest} {longest}\u0300")
    assert [next(words).text, next(words).text] == ["hello", longest]
    with pytest.raises(InvalidRequest, match="has 501 characters; the limit is 500") as refusal:
        next(words)
    assert refusal.value.param == "text"
