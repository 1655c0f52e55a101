"""What a live stream finds becomes items: utterances, text outside of any, and streams that break off."""

import pytest

from antiphon.http.realtime.items import Conversation
from antiphon.http.realtime.turns import Turns
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.tasks import Final, SpeechStarted, SpeechStopped, TaskResult, TextDelta

RATE = 16_000
PREFIX = "conversation.item.input_audio_transcription."


@pytest.fixture
def turns():
    """The turns of a stream that begins after two seconds of the session's audio."""
    return Turns(Conversation(is_old=False), RATE, 2000)


def told(turns, *found):
    return [event for one in found for event in turns.tell(one)]


def short(events):
    return [str(event["type"]).rpartition(".")[2] for event in events]


def transcripts(events):
    return [event["transcript"] for event in events if event["type"] == f"{PREFIX}completed"]


def test_an_utterance_is_an_item_and_its_places_are_the_sessions(turns):
    events = told(
        turns, SpeechStarted(RATE), TextDelta("so "), TextDelta("be it"), SpeechStopped(3 * RATE), Final(TaskResult())
    )
    assert short(events) == [
        "speech_started", "delta", "delta", "speech_stopped", "committed", "added", "done", "completed"
    ]  # fmt: skip
    assert (events[0]["audio_start_ms"], events[3]["audio_end_ms"]) == (3000, 5000)
    assert transcripts(events) == ["so be it"]
    assert events[-1]["usage"] == {"type": "duration", "seconds": 2.0}
    assert turns.finish(6000) == []


def test_items_follow_one_another(turns):
    events = told(turns, SpeechStarted(0), SpeechStopped(1), SpeechStarted(2), SpeechStopped(3))
    first, second = (event for event in events if event["type"] == "input_audio_buffer.committed")
    assert first["previous_item_id"] is None
    assert second["previous_item_id"] == first["item_id"] != second["item_id"]


def test_text_of_a_model_that_finds_no_utterances_is_one_item(turns):
    events = told(turns, TextDelta("so "), TextDelta("be it")) + turns.finish(4000)
    assert short(events) == ["delta", "delta", "committed", "added", "done", "completed"]
    assert transcripts(events) == ["so be it"]
    assert events[-1]["usage"]["seconds"] == 2.0


def test_an_utterance_that_the_end_cuts_is_committed(turns):
    events = told(turns, SpeechStarted(0), TextDelta("so")) + turns.finish(4000)
    assert transcripts(events) == ["so"]


def test_an_utterance_that_begins_within_another_ends_that(turns):
    events = told(turns, SpeechStarted(0), TextDelta("a"), SpeechStarted(1), TextDelta("b"), SpeechStopped(2))
    assert transcripts(events) == ["a", "b"]


def test_an_utterance_without_words_has_an_empty_transcript(turns):
    assert transcripts(told(turns, SpeechStarted(0), SpeechStopped(1))) == [""]


def test_a_stream_that_breaks_off_leaves_its_item_without_a_transcript(turns):
    events = told(turns, SpeechStarted(0), TextDelta("so")) + turns.fail(EngineError("it broke"))
    assert short(events)[2:] == ["committed", "added", "done", "failed"]
    assert events[-1]["error"]["code"] == "engine_error"
    assert turns.finish(4000) == []


def test_the_older_protocol_has_items_created():
    turns = Turns(Conversation(is_old=True), RATE, 0)
    assert short(told(turns, SpeechStarted(0), SpeechStopped(1)))[2:] == ["committed", "created", "completed"]
