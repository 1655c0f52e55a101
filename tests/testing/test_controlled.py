"""What the controlled engine answers, and how it guards the rules of a session."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.ports.adapter import Adapter
from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.testing.answers import RATE, tone, tone_hz
from antiphon.testing.controlled import ControlledModel, ControlledSession
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import ConfigError, InvalidRequest, InvariantError
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    Segment,
    SpeechStarted,
    SpeechStopped,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
    TurnsDelta,
)

OpenSession = Callable[[Task], ControlledSession]
HELLO = TaskRequest(text="hello")


def test_the_text_names_revision_session_and_input(session: ControlledSession) -> None:
    assert session.run(HELLO).text == "tts-v1|s1|hello"


def test_the_revision_file_replaces_the_name_of_the_folder(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.set("revision", "v2")
    session = ControlledAdapter().load(checkpoint.spec()).open_session()
    assert session is not None
    assert session.run(HELLO).text == "v2|s1|hello"
    assert session.run(HELLO).audio == tone("v2")


def test_loaded_weights_keep_their_revision(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.set("revision", "v2")
    assert session.run(HELLO).text == "tts-v1|s1|hello"


def test_a_tone_lasts_a_tenth_of_a_second_and_has_its_revisions_frequency() -> None:
    sound = tone("v1")
    assert (sound.frames, sound.rate, sound.channels) == (RATE // 10, RATE, 1)
    crossings = sum(a < 0 <= b for a, b in zip(sound.samples, sound.samples[1:], strict=False))
    assert crossings == pytest.approx(tone_hz("v1") / 10, abs=1)
    assert tone_hz("v1") != tone_hz("v2")


def test_session_names_count_on_over_clones_and_loads(checkpoint: ControlledCheckpoint) -> None:
    names = []
    for _ in range(2):
        primary = ControlledAdapter().load(checkpoint.spec()).open_session()
        assert primary is not None
        clone = primary.clone()
        assert clone is not None
        names += [primary.session_id, clone.session_id]
    assert names == ["s1", "s2", "s3", "s4"]


def test_a_transcript_has_a_segment_and_its_words(open_session: OpenSession, second_of_silence: Pcm) -> None:
    result = open_session(Task.ASR).run(TaskRequest(text="two words", audio=second_of_silence, language="en"))
    assert (result.text, result.language, result.sample_rate) == ("tts-v1|s1|two words", "en", RATE)
    assert [(part.text, part.start_sample, part.end_sample) for part in result.segments] == [(result.text, 0, RATE)]
    words = [(word.text, word.start_sample, word.end_sample) for word in result.words]
    assert words == [("tts-v1|s1|two", 0, RATE // 2), ("words", RATE // 2, RATE)]


def test_an_alignment_has_the_words_of_the_text(open_session: OpenSession, second_of_silence: Pcm) -> None:
    result = open_session(Task.ALIGN).run(TaskRequest(text="two words", audio=second_of_silence))
    assert [word.text for word in result.words] == ["two", "words"]


def test_a_diarization_has_turns_of_two_speakers(open_session: OpenSession, second_of_silence: Pcm) -> None:
    result = open_session(Task.DIAR).run(TaskRequest(audio=second_of_silence))
    assert [turn.speaker_id for turn in result.speaker_turns] == ["speaker_0", "speaker_1", "speaker_0"]
    assert result.speaker_turns[-1].end_sample == RATE


def test_voice_activity_has_three_stretches(open_session: OpenSession, second_of_silence: Pcm) -> None:
    result = open_session(Task.VAD).run(TaskRequest(audio=second_of_silence))
    assert [part.start_sample for part in result.segments] == [0, RATE // 3, 2 * RATE // 3]


def test_speech_streams_in_three_pieces(session: ControlledSession) -> None:
    *pieces, last = session.stream(HELLO, None)
    assert [type(piece) for piece in pieces] == [AudioDelta] * 3
    joined = b"".join(piece.pcm.samples.tobytes() for piece in pieces if isinstance(piece, AudioDelta))
    assert joined == tone("tts-v1").samples.tobytes()
    assert isinstance(last, Final)
    assert (last.result.text, last.result.audio) == ("tts-v1|s1|hello", None)


def test_a_transcript_streams_in_three_pieces_of_text(open_session: OpenSession, second_of_silence: Pcm) -> None:
    request = TaskRequest(text="hello", audio=second_of_silence)
    *pieces, last = open_session(Task.ASR).stream(request, None)
    assert len(pieces) == 3
    assert isinstance(last, Final)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == last.result.text


def test_a_diarization_streams_its_turns(open_session: OpenSession, second_of_silence: Pcm) -> None:
    *pieces, last = open_session(Task.DIAR).stream(TaskRequest(audio=second_of_silence), None)
    assert isinstance(last, Final)
    turns = [turn for piece in pieces if isinstance(piece, TurnsDelta) for turn in piece.turns]
    assert turns == list(last.result.speaker_turns)


def test_audio_that_comes_in_chunks_is_heard_whole(open_session: OpenSession, second_of_silence: Pcm) -> None:
    chunks = iter([AudioChunk(second_of_silence, 0), AudioChunk(second_of_silence, RATE)])
    *_, last = open_session(Task.ASR).stream(TaskRequest(live=True), chunks)
    assert isinstance(last, Final)
    assert last.result.segments[0].end_sample == 2 * RATE


@pytest.mark.parametrize("size", [1, 799, 1600, 8000], ids=str)
def test_live_audio_is_echoed_alike_however_it_is_cut(
    checkpoint: ControlledCheckpoint, open_session: OpenSession, size: int
) -> None:
    checkpoint.set("live.echo", "1600")
    starts = range(0, 4000, size)
    chunks = [AudioChunk(Pcm.from_bytes(bytes(4 * min(size, 4000 - start)), RATE), start) for start in starts]
    events = list(open_session(Task.ASR).stream(TaskRequest(live=True), iter(chunks)))
    assert events[:-1] == [
        SpeechStarted(0),
        TextDelta("1 ", 1600),
        SpeechStopped(1600),
        SpeechStarted(1600),
        TextDelta("2 ", 3200),
        SpeechStopped(3200),
    ]
    assert events[-1] == Final(TaskResult(text="1 2 ", segments=(Segment("1 2 ", 0, 4000),), sample_rate=RATE))


def test_a_batch_answers_in_order_with_a_run_for_each_item(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    results = list(session.run_batch([HELLO, replace(HELLO, text="two")]))
    assert [(index, result.text) for index, result in results] == [(0, "tts-v1|s1|hello"), (1, "tts-v1|s1|two")]
    assert [(event.step, event.request) for event in checkpoint.events()[2:]][1:] == [
        ("run", "hello"),
        ("ran", "hello"),
        ("run", "two"),
        ("ran", "two"),
    ]


def test_a_life_is_told_in_events(checkpoint: ControlledCheckpoint) -> None:
    model = ControlledAdapter().load(checkpoint.spec())
    session = model.open_session()
    assert session is not None
    clone = session.clone()
    assert clone is not None
    session.prepare(HELLO)
    session.run(HELLO)
    list(session.stream(HELLO, None))
    session.reset()
    clone.close()
    session.close()
    model.close()
    told = [(event.step, event.session) for event in checkpoint.events()]
    assert told == [
        *[("load", None), ("loaded", None), ("open", "s1"), ("clone", "s2"), ("prepare", "s1"), ("run", "s1")],
        *[("ran", "s1"), ("run", "s1"), ("stream", "s1"), ("ran", "s1"), ("reset", "s1"), ("destroy", "s2")],
        *[("session_closed", "s2"), ("destroy", "s1"), ("session_closed", "s1"), ("destroy", None), ("closed", None)],
    ]


@pytest.mark.parametrize("text", [None, ""])
def test_speech_without_a_text_is_refused(session: ControlledSession, text: str | None) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        session.prepare(TaskRequest(text=text))
    assert refusal.value.param == "input"


def test_an_alignment_without_a_text_is_refused(open_session: OpenSession, second_of_silence: Pcm) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        open_session(Task.ALIGN).prepare(TaskRequest(audio=second_of_silence))
    assert refusal.value.param == "text"


def test_a_transcript_without_an_audio_is_refused(open_session: OpenSession) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        open_session(Task.ASR).run(HELLO)
    assert refusal.value.param == "audio"


@pytest.mark.parametrize("call", ["inspect", "load"])
def test_a_missing_folder_is_a_configuration_error(checkpoint: ControlledCheckpoint, call: str, tmp_path: Path) -> None:
    spec = replace(checkpoint.spec(), path=str(tmp_path / "missing"))
    with pytest.raises(ConfigError):
        getattr(ControlledAdapter(), call)(spec)


@pytest.mark.parametrize("capacity", [True, "4", 1.5])
def test_a_session_capacity_that_is_no_integer_is_a_configuration_error(
    checkpoint: ControlledCheckpoint, capacity: bool | str | float
) -> None:
    with pytest.raises(ConfigError):
        ControlledAdapter().inspect(checkpoint.spec(session_options={"capacity": capacity}))


def test_it_fulfils_the_port() -> None:
    adapter: Adapter = ControlledAdapter()
    assert adapter.family == "controlled"


def test_two_calls_at_once_on_one_session_break_its_rules(session: ControlledSession) -> None:
    events = session.stream(HELLO, None)
    next(events)
    with pytest.raises(InvariantError, match="two calls at once"):
        session.run(HELLO)


def test_a_request_after_a_stream_without_a_reset_breaks_its_rules(session: ControlledSession) -> None:
    list(session.stream(HELLO, None))
    with pytest.raises(InvariantError, match="not reset"):
        session.prepare(HELLO)
    session.reset()
    session.prepare(HELLO)


def test_a_call_after_the_close_breaks_its_rules(session: ControlledSession) -> None:
    session.close()
    with pytest.raises(InvariantError, match="closed session"):
        session.close()


def test_weights_that_are_closed_before_their_sessions_break_the_rules(
    model: ControlledModel, session: ControlledSession
) -> None:
    with pytest.raises(InvariantError, match="s1"):
        model.close()
    session.close()
    model.close()
