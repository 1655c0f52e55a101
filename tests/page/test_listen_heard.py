"""What the pane "Listen" makes of the answers of a server: how words stand in a text, and who says them."""

import pytest

from browser import visit
from page_waits import compute
from server_process import running_server

TOLD = """async ([heard]) => {
  const { paragraphsOf } = await import("/page/studio/listen/heard.js");
  const told = ({ before, text }) => before + text;
  return paragraphsOf(heard).map((pieces) => [pieces[0].speaker, pieces.map(told).join("|")]);
}"""
LONG = """async ([count]) => {
  const { TranscriptView } = await import("/page/studio/listen/transcript_view.js");
  const words = Array.from({ length: count }, (_, index) => ({ text: `w${index}`, start: index, end: index + 1 }));
  const text = words.map((word) => word.text).join(" ");
  const view = new TranscriptView();
  document.body.append(view);
  view.show({ text, segments: [{ text, start: 0, end: count }], words, turns: [] }, () => null);
  view.markAt(count / 2);
  const changes = new MutationObserver(() => {});
  changes.observe(view, { attributes: true, childList: true, subtree: true });
  view.markAt(count / 2 + 1);
  return [view.querySelector(".sounding").textContent, changes.takeRecords().length];
}"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    with (
        running_server(tmp_path_factory.mktemp("server"), {"models": []}) as server,
        visit(browser, server.url) as it,
    ):
        yield it


def said(text, start, end):
    return {"text": text, "start": start, "end": end}


def turn(speaker, start, end):
    return {"speaker": speaker, "start": start, "end": end}


def told(page, segments, words=(), turns=()):
    text = " ".join(segment["text"] for segment in segments)
    return compute(page, TOLD, [{"text": text, "segments": segments, "words": list(words), "turns": list(turns)}])


def test_words_stand_as_in_the_text(page):
    segment = said("¿Qué? No, no… 你好", 0, 5)
    words = [said("Qué?", 0, 1), said("No,", 1, 2), said("no…", 2, 3), said("你", 3, 4), said("好", 4, 5)]
    assert told(page, [segment], words) == [[None, "¿Qué?| No,| no…| 你|好"]]


def test_a_word_that_the_text_does_not_have_stands_by_itself(page):
    assert told(page, [said("a b", 0, 3)], [said("a", 0, 1), said("x", 1, 2), said("b", 2, 3)]) == [[None, "a| x| b"]]


def test_a_word_is_in_the_segment_where_its_middle_is(page):
    words = [said("one", 0, 1.1), said("two", 0.9, 2)]
    assert told(page, [said("one", 0, 1), said("two", 1, 2)], words) == [[None, "one"], [None, "two"]]


def test_without_times_of_words_segments_are_the_pieces(page):
    assert told(page, [said("one two", 0, 1), said("", 1, 2), said("three", 2, 3)]) == [
        [None, "one two"],
        [None, "three"],
    ]


def test_a_word_is_said_in_the_turn_that_it_overlaps_longest_or_in_the_nearest(page):
    words = [said("a", 0, 1), said("b", 1, 2), said("c", 3.5, 4), said("d", 5.4, 6)]
    turns = [turn("A", 0, 1.5), turn("B", 1.5, 2.25), turn("C", 6.2, 7)]
    assert told(page, [said("a b c d", 0, 6)], words, turns) == [["A", "a| b"], ["B", "c"], ["C", "d"]]


def test_to_mark_another_word_of_many_changes_two(page):
    assert compute(page, LONG, [20_000]) == ["w10001", 2]
