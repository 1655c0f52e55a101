"""Whole calls on a session, as the runtime makes them; it knows no engine and no test framework."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import NamedTuple

from antiphon.ports.adapter import BatchSession, OfflineSession, Session, StreamingSession
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    Interface,
    Segment,
    SpeakerTurn,
    StreamEvent,
    TaskRequest,
    TaskResult,
    TextDelta,
    TurnsDelta,
    Word,
)


class Streamed(NamedTuple):
    """A whole stream, joined: its float32 bytes, its text, its turns and its final result; and what was before that."""

    audio: bytes
    text: str
    turns: tuple[SpeakerTurn, ...]
    final: TaskResult
    pieces: tuple[StreamEvent, ...]


def answer(session: Session, request: TaskRequest) -> TaskResult:
    """Prepare and call `session` by the first interface that it has: offline, batch, streaming.

    Raises what the session raises. The answer of a stream gets the audio of its joined pieces.
    """
    result = answer_or_none(session, request)
    assert result is not None, "the session gave no result"
    return result


def answer_or_none(session: Session, request: TaskRequest) -> TaskResult | None:
    """Do as `answer`, or return None when the session ended early without one."""
    session.prepare(request)
    if Interface.OFFLINE in session.interfaces:
        assert isinstance(session, OfflineSession)
        return session.run(request)
    if Interface.BATCH in session.interfaces:
        assert isinstance(session, BatchSession)
        return dict(session.run_batch([request])).get(0)
    assert isinstance(session, StreamingSession)
    try:
        events = list(session.stream(request, None))
    finally:
        session.reset()  # the runtime resets after any end of a stream
    result = next((event.result for event in events if isinstance(event, Final)), None)
    if result is None or not (sound := _sound(events)):
        return result
    return replace(result, audio=Pcm.from_bytes(sound, session.sample_rate, session.channels))


def whole_stream(
    session: StreamingSession, request: TaskRequest, audio: Iterator[AudioChunk] | None = None
) -> Streamed:
    """Run a whole stream, check that it ends in exactly one Final, and reset the session after whatever end."""
    session.prepare(request)
    try:
        events = list(session.stream(request, audio))
    finally:
        session.reset()
    assert events, "the stream gave no event"
    *pieces, last = events
    assert isinstance(last, Final), "a stream ends in its final result"
    assert not any(isinstance(piece, Final) for piece in pieces), "a stream has one final result"
    for piece in pieces:
        if isinstance(piece, AudioDelta):
            assert (piece.pcm.rate, piece.pcm.channels) == (session.sample_rate, session.channels)
    return Streamed(
        audio=_sound(pieces),
        text="".join(piece.text for piece in pieces if isinstance(piece, TextDelta)),
        turns=tuple(turn for piece in pieces if isinstance(piece, TurnsDelta) for turn in piece.turns),
        final=last.result,
        pieces=tuple(pieces),
    )


def chunks_of(pcm: Pcm, frames: int) -> Iterator[AudioChunk]:
    """Cut audio into chunks of so many frames, as if it were being spoken."""
    for offset in range(0, pcm.frames, frames):
        samples = pcm.samples[offset * pcm.channels : (offset + frames) * pcm.channels]
        yield AudioChunk(Pcm(samples, pcm.rate, pcm.channels), offset)


def close_stream(events: Iterator[StreamEvent]) -> None:
    """Close a stream as the runtime does: a generator has `close`, another iterator is dropped."""
    if isinstance(events, GeneratorType):
        events.close()


def check_units(session: Session, result: TaskResult) -> None:
    """Audio has the session's shape; spans are ordered, and say at which rate they count."""
    if result.audio is not None:
        assert (result.audio.rate, result.audio.channels) == (session.sample_rate, session.channels)
        assert result.sample_rate == result.audio.rate
    spans: list[Segment | Word | SpeakerTurn] = [*result.segments, *result.words, *result.speaker_turns]
    assert not spans or result.sample_rate is not None, "spans count samples of a known rate"
    for span in spans:
        assert 0 <= span.start_sample <= span.end_sample


def _sound(events: Sequence[StreamEvent]) -> bytes:
    """The joined float32 bytes of the pieces of speech."""
    return b"".join(event.pcm.samples.tobytes() for event in events if isinstance(event, AudioDelta))
