"""A growing text is cut where a sentence has ended, however its pieces lie."""

import pytest

from antiphon.listeners.wyoming.sentences import LONGEST_SPACE, SentenceCutter
from antiphon.text.sentences import LONGEST


def cut(*pieces):
    cutter = SentenceCutter()
    sentences = [sentence for piece in pieces for sentence in cutter.feed(piece)]
    return sentences, cutter.finish()


@pytest.mark.parametrize(
    ("text", "sentences", "rest"),
    [
        ("One. Two", ["One."], "Two"),
        ("One.", [], "One."),
        ("It is 3.5 volts now", [], "It is 3.5 volts now"),
        ('He said "No!" And left', ['He said "No!"'], "And left"),
        ("A line\nAnother", ["A line"], "Another"),
        ("a line that\ngoes on", [], "a line that goes on"),
        ("Dr. Smith came. He left", ["Dr. Smith came."], "He left"),
        ("\u4eca\u65e5\u306f\u3002\u660e\u65e5", ["\u4eca\u65e5\u306f\u3002"], "\u660e\u65e5"),
        ("Wait... what? Yes", ["Wait... what?"], "Yes"),
        ("... well. Yes", ["... well."], "Yes"),
        ("Done. \U0001f600", ["Done."], ""),
        (" \n ", [], ""),
    ],
)
def test_a_text_is_cut_after_each_sentence(text, sentences, rest):
    assert cut(text) == (sentences, rest)


def test_it_does_not_matter_how_the_text_comes():
    text = 'First one. "Second!" Third? 3.14 and so on\nlast'
    assert cut(*text) == cut(text)


@pytest.mark.parametrize("space", [" ", "  ", "\t ", "\n", " \n ", "\r\n", "\n\n", " \n\n\n ", "\u2028", " " * 15])
def test_it_does_not_matter_how_the_space_between_two_words_comes(space):
    for text in (f"One two{space}three. Four{space}five", f"Done.{space}Next", f"a line{space}Another"):
        assert cut(*text) == cut(text)


@pytest.mark.parametrize(("space", "meaning"), [(" " * 99, " "), (" \n" + " " * 99, "\n"), ("\n \n" * 33, "\n\n")])
def test_a_long_space_separates_as_much_as_a_short_one(space, meaning):
    for text in ("One two{}three. Four", "a line{}another", "Done.{}Next"):
        (sentences, rest), (wanted, wanted_rest) = cut(*text.format(space)), cut(text.format(meaning))
        assert [" ".join(it.split()) for it in (*sentences, rest)] == [*wanted, wanted_rest]


@pytest.mark.parametrize("sign", [" ", "\n", "a ", "a\n", "a", ".", "A b. "])
def test_what_is_held_back_stays_short(sign):
    cutter = SentenceCutter()
    for _ in range(3000):
        cutter.feed(sign)
        assert len(cutter._rest) <= LONGEST + LONGEST_SPACE + 1
