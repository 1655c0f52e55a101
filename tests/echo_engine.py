"""A sound engine as small as one can be, family `echo`, for tests that break it in one way each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    Interface,
    Mode,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
)

RATE = 8000


class EchoSession:
    """A sound session: its speech is the bytes of the text, a sample each."""

    family, task, mode = "echo", Task.TTS, Mode.OFFLINE
    interfaces = frozenset(Interface)
    sample_rate, channels, capacity = RATE, 1, 2

    def __init__(self) -> None:
        self.requests: list[str] = []

    def clone(self) -> "EchoSession":
        return type(self)()

    def prepare(self, request: TaskRequest) -> None:
        if not request.text:
            raise InvalidRequest("a text is needed", param="input")

    def run(self, request: TaskRequest) -> TaskResult:
        self.requests.append(request.text or "")
        return TaskResult(text=request.text, audio=echo(request), sample_rate=RATE)

    def run_batch(self, requests: Sequence[TaskRequest]) -> Iterator[tuple[int, TaskResult]]:
        yield from enumerate(map(self.run, requests))

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        if request.live:
            assert audio is not None
            yield from self.hear(audio)
            return
        result = self.run(request)
        assert result.audio is not None
        yield AudioDelta(Pcm(result.audio.samples[:1], RATE))
        yield AudioDelta(Pcm(result.audio.samples[1:], RATE))
        yield Final(replace(result, audio=None))

    def hear(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        """Write a letter for each frame."""
        text = ""
        for chunk in audio:
            for sample in chunk.pcm.samples:
                text += chr(97 + int(sample))
                yield TextDelta(text[-1])
        yield Final(TaskResult(text=text))

    def reset(self) -> None: ...
    def close(self) -> None: ...


class EchoModel:
    session: type[EchoSession] = EchoSession

    def open_session(self) -> EchoSession | None:
        return self.session()

    def close(self) -> None: ...


class EchoAdapter:
    family = "echo"
    session: type[EchoSession] = EchoSession

    def inspect(self, spec: ModelSpec) -> Capability:
        if not Path(spec.path).exists():
            raise ConfigError("there is no such model", param="path")
        return Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=RATE, weight_bytes=0)

    def load(self, spec: ModelSpec) -> EchoModel:
        model = EchoModel()
        model.session = self.session
        return model


def echo(request: TaskRequest) -> Pcm:
    samples = b"".join(bytes((0, 0, code, 63)) for code in (request.text or "").encode())
    return Pcm.from_bytes(samples, RATE)
