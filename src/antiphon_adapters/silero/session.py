"""One slot of the Silero detector: checks a request and says where somebody speaks. It owns no weights."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest, InvariantError
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import (
    Final,
    Interface,
    Segment,
    SpeechStarted,
    SpeechStopped,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
)
from antiphon_adapters.options import OptionReader
from antiphon_adapters.silero.endpointing import THRESHOLD, Pauses
from antiphon_adapters.silero.listening import SpeechListener, blocks_of, spans_of
from antiphon_adapters.silero.network import SAMPLE_RATE
from antiphon_adapters.stateless import StatelessSession

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession  # noqa: F401 (the session's weights)

FAMILY = "silero_vad"

OPTIONS = (
    OptionSpec("threshold", "number", "How sure the detector must be; the default is 0.5.", 0.05, 0.95),
    OptionSpec("min_speech_ms", "integer", "Shorter sounds are no speech; the default is 250.", 0, 10_000),
    OptionSpec("min_silence_ms", "integer", "Shorter pauses are part of speech; the default is 100.", 0, 10_000),
    OptionSpec("padding_ms", "integer", "Silence counted to speech at both ends; the default is 30.", 0, 2_000),
)
"""The defaults are those of Silero's own `get_speech_timestamps`."""


class SileroVadSession(StatelessSession["InferenceSession"]):
    """A session over a shared network; it keeps no state between requests, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.VAD
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = SAMPLE_RATE
    channels = 1
    _options = OptionReader(OPTIONS)

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused. Raises InvalidRequest."""
        if not request.live:
            _require_mono(request.audio)
        self._pauses(request)

    def run(self, request: TaskRequest) -> TaskResult:
        """Find the speech in a whole recording: a segment without text for each stretch."""
        for event in self.stream(request, None):
            if isinstance(event, Final):
                return event.result
        raise InvariantError("a recording ended without a result")

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Say where speech begins and ends as soon as it is certain, then all of it; live audio or a recording."""
        listener = SpeechListener(self._open, self._pauses(request))
        blocks = blocks_of(_require_mono(request.audio)) if audio is None else _live(audio)
        edges: list[SpeechStarted | SpeechStopped] = []
        for block in blocks:
            for edge in listener.hear(block):
                edges.append(edge)
                yield edge
            if request.cancelled():
                break
        for edge in listener.finish():
            edges.append(edge)
            yield edge
        segments = tuple(Segment("", start, end) for start, end in spans_of(edges))
        yield Final(TaskResult(segments=segments, sample_rate=SAMPLE_RATE))

    def _pauses(self, request: TaskRequest) -> Pauses:
        options = self._options
        return Pauses(
            shortest_speech=_samples(options.integer(request, "min_speech_ms", 250)),
            silence=_samples(options.integer(request, "min_silence_ms", 100)),
            padding=_samples(options.integer(request, "padding_ms", 30)),
            threshold=options.number(request, "threshold", THRESHOLD),
        )


def _live(audio: Iterator[AudioChunk]) -> "Iterator[NDArray[np.float32]]":
    for chunk in audio:
        yield from blocks_of(_require_mono(chunk.pcm))


def _require_mono(pcm: Pcm | None) -> Pcm:
    if pcm is None:
        raise InvalidRequest("there is no audio", param="audio")
    if (pcm.rate, pcm.channels) != (SAMPLE_RATE, 1):
        raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
    return pcm


def _samples(ms: int) -> int:
    return ms * SAMPLE_RATE // 1000
