"""Words are said once two guesses in a row have them, and what was said is never taken back or said again."""

import pytest

from antiphon_adapters.whisper.agreement import Agreement


def said(*guesses: str, whole: str | None = None) -> list[str]:
    agreement = Agreement()
    pieces = [agreement.hear(guess) for guess in guesses]
    return pieces if whole is None else [*pieces, agreement.settle(whole)]


def test_one_guess_says_nothing() -> None:
    assert said(" The quick brown") == [""]


def test_what_two_guesses_share_is_said_once() -> None:
    assert said(" The quick", " The quick brown", " The quick brown fox") == ["", " The quick", " brown"]


def test_a_word_that_is_still_growing_waits() -> None:
    assert said(" the young prince", " the young princess") == ["", " the young"]


def test_a_word_that_was_cut_off_waits() -> None:
    assert said(" they had made up-", " they had made a") == ["", " they had made"]


@pytest.mark.parametrize("mark", [".", "...", ",", "?", "。", "\u2026"])
def test_marks_at_the_end_wait_for_a_word_behind_them(mark: str) -> None:
    assert said(f" He said{mark}", f" He said{mark}", f" He said{mark} Go", f" He said{mark} Go on") == [
        "",
        " He said",
        "",
        f"{mark} Go",
    ]


def test_marks_that_come_and_go_do_not_hold_up_their_word() -> None:
    assert said(" lazy dog.", " lazy dog and", " lazy dog and cat") == ["", " lazy dog", " and"]


@pytest.mark.parametrize("word", [" don't", " twenty-one", " 3.5", " 10,000", " it\u2019s"])
def test_a_word_with_a_mark_inside_is_one_word(word: str) -> None:
    assert said(word[:-2], word, word + " more") == ["", "", word]


def test_writing_without_spaces_agrees_sign_by_sign() -> None:
    assert said("今日は天気", "今日は天気がいい", whole="今日は天気がいい。") == ["", "今日は天気", "がいい。"]


def test_a_guess_that_disagrees_takes_nothing_back() -> None:
    assert said(" a b c", " a b c d", " a x", " a x y", " a x y z") == ["", " a b c", "", "", ""]


def test_the_whole_text_goes_on_where_the_words_ended() -> None:
    assert said(" The quick", " The quick brown", whole=" The quick brown fox.") == ["", " The quick", " brown fox."]


def test_the_whole_text_alone_is_all_said() -> None:
    assert said(whole=" Good morning.") == [" Good morning."]


def test_another_writing_of_what_was_said_is_not_said_again() -> None:
    assert said(" the train", " the train leaves", whole=" The train, leaves soon.")[-1] == ", leaves soon."


def test_a_word_that_was_misheard_is_not_said_again() -> None:
    assert said(" for vision to", " for vision to greet", whole=" provision to greet the king")[-1] == " greet the king"


def test_stops_that_the_guesses_lacked_make_no_word_be_said_again() -> None:
    guess = " to the river in the evening with friends tomorrow"
    whole = " To the river. In the evening, with friends. Tomorrow it rains."
    assert said(guess, guess, whole=whole)[-1] == " it rains."


def test_a_later_use_of_the_same_word_is_no_reason_to_skip() -> None:
    guess = " we saw him by the"
    whole = " we saw him buy a cat and go to the mat"
    assert said(guess, guess, whole=whole)[-1] == " cat and go to the mat"


def test_a_whole_text_that_is_shorter_adds_nothing() -> None:
    assert said(" one two three", " one two three", whole=" one two") == ["", " one two three", ""]


def test_it_tells_how_much_of_the_latest_guess_is_agreed() -> None:
    agreement = Agreement()
    agreement.hear(" The quick")
    agreement.hear(" The quick brown")
    assert agreement.agreed == len(" The quick")
    agreement.hear(" A slow")
    assert agreement.agreed == 0
