"""A growing text is cut where a sentence has ended, however its pieces lie."""

import pytest

from antiphon.listeners.wyoming.sentences import SentenceCutter


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
