"""What the controlled engine answers: small, deterministic results. It reads no file and keeps no state."""

import zlib
from array import array
from collections.abc import Iterator
from dataclasses import replace
from math import pi, sin
from typing import assert_never

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    Segment,
    SpeakerTurn,
    SpeechStarted,
    SpeechStopped,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
    TurnsDelta,
    Word,
)

RATE = 16_000
"""The sample rate of what the controlled engine takes and gives, in Hz."""
TONE_FRAMES = RATE // 10
PIECES = 3
"""How many pieces a stream has before its final result."""


def tone_hz(revision: str) -> int:
    """The frequency that stands for a revision, in Hz; 0.1 s of it are whole periods."""
    return 200 + 10 * (zlib.crc32(revision.encode()) % 300)


def tone(revision: str) -> Pcm:
    """The sound of every answer of a revision: 0.1 s, mono, at half of full scale."""
    step = 2 * pi * tone_hz(revision) / RATE
    return Pcm(memoryview(array("f", (0.5 * sin(step * frame) for frame in range(TONE_FRAMES)))), RATE)


def result_of(task: Task, text: str, request: TaskRequest, sound: Pcm, frames: int) -> TaskResult:
    """The whole answer: `text` for every task, and what the task adds over the `frames` of the request's audio."""
    result = TaskResult(text=text, language=request.language, sample_rate=RATE)
    match task:
        case Task.TTS:
            return replace(result, audio=sound)
        case Task.ASR:
            return replace(result, segments=(Segment(text, 0, frames),), words=_words(text, frames))
        case Task.ALIGN:
            return replace(result, words=_words(request.text or "", frames))
        case Task.VAD:
            return replace(result, segments=tuple(Segment("", start, end) for start, end in _spans(PIECES, frames)))
        case Task.DIAR:
            turns = (SpeakerTurn(a, b, f"speaker_{n % 2}", 1.0) for n, (a, b) in enumerate(_spans(PIECES, frames)))
            return replace(result, speaker_turns=tuple(turns))
        case _:
            assert_never(task)


def pieces_of(result: TaskResult) -> Iterator[StreamEvent]:
    """The same answer as a stream: three pieces, of sound or turns where there are any, else of text; then the end."""
    if result.audio is not None:
        for start, end in _spans(PIECES, result.audio.frames):
            yield AudioDelta(Pcm(result.audio.samples[start:end], result.audio.rate))
    elif result.speaker_turns:
        for turn in result.speaker_turns:
            yield TurnsDelta((turn,))
    else:
        text = result.text or ""
        heard = _spans(PIECES, result.segments[-1].end_sample) if result.segments else [(0, None)] * PIECES
        for (start, end), (_, until) in zip(_spans(PIECES, len(text)), heard, strict=True):
            yield TextDelta(text[start:end], until)
    yield Final(replace(result, audio=None))


def echo(audio: Iterator[AudioChunk], every: int) -> Iterator[StreamEvent]:
    """An utterance for every so many frames of live audio, which is the number of it; then all of them as the end."""
    heard, said = 0, ""
    for chunk in audio:
        for number in range(heard // every, (heard + chunk.pcm.frames) // every):
            yield SpeechStarted(number * every)
            yield TextDelta(f"{number + 1} ", (number + 1) * every)
            yield SpeechStopped((number + 1) * every)
            said += f"{number + 1} "
        heard += chunk.pcm.frames
    yield Final(TaskResult(text=said, segments=(Segment(said, 0, heard),), sample_rate=RATE))


def _words(text: str, frames: int) -> tuple[Word, ...]:
    words = text.split()
    return tuple(Word(word, a, b, 1.0) for word, (a, b) in zip(words, _spans(len(words), frames), strict=True))


def _spans(parts: int, length: int) -> list[tuple[int, int]]:
    """Cut 0..length into `parts` neighbours of about equal length."""
    return [(length * part // parts, length * (part + 1) // parts) for part in range(parts)]
