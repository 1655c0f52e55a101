"""One slot of a speaker-clustering model: checks a request and says who speaks when. It owns no weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import (
    Final,
    Interface,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TurnsDelta,
)
from antiphon_adapters.options import OptionReader
from antiphon_adapters.silero.listening import SpeechListener, spans_of
from antiphon_adapters.silero.network import SAMPLE_RATE
from antiphon_adapters.speaker_clustering.clusters import MAX_SPEAKERS, SpeakerCount, cluster
from antiphon_adapters.speaker_clustering.prints import SURE_FRAMES, prints_of, windows_of
from antiphon_adapters.speaker_clustering.recording import Recording
from antiphon_adapters.speaker_clustering.speech import LISTENING, Stretch, stretches_of
from antiphon_adapters.speaker_clustering.turns import speaker_turns, voiced_parts
from antiphon_adapters.stateless import StatelessSession

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

FAMILY = "speaker_clustering"

DEFAULT_MOST = 8
DEFAULT_THRESHOLD = 0.36
"""Between the widest voice (0.31) and the nearest two (0.40) of the recordings that it was tried on."""

NOBODY = TaskResult(sample_rate=SAMPLE_RATE)

OPTIONS = (
    OptionSpec("num_speakers", "integer", "How many speak, where that is known.", 1, MAX_SPEAKERS),
    OptionSpec("min_speakers", "integer", "The fewest that may speak; the default is 1.", 1, MAX_SPEAKERS),
    OptionSpec("max_speakers", "integer", "The most that may speak; the default is 8.", 1, MAX_SPEAKERS),
    OptionSpec("threshold", "number", "Voices further apart are two speakers; the default is 0.36.", 0.05, 1.0),
)


@dataclass(frozen=True, slots=True)
class Weights:
    """Both networks in memory, for any number of sessions; equal calls answer alike."""

    encoder: "InferenceSession"
    detector: "InferenceSession"


class SpeakerClusteringSession(StatelessSession[Weights]):
    """A session over shared weights; it keeps no state between requests, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.DIAR
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = SAMPLE_RATE
    channels = 1
    _options = OptionReader(OPTIONS)

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused. Raises InvalidRequest."""
        if request.live:
            raise InvalidRequest("this model compares all voices of a recording: it hears no live audio", param="model")
        _require_mono(request.audio)
        self._count(request)

    def run(self, request: TaskRequest) -> TaskResult:
        """Say who speaks when. A request that is cancelled ends after the block or the batch at hand."""
        import numpy as np

        recording, count, weights = Recording.of(_require_mono(request.audio)), self._count(request), self._open
        stretches = _stretches(weights.detector, recording, request)
        windows = [windows_of(stretch.start, stretch.end) for stretch in stretches]
        prints: list[NDArray[np.float32]] = []
        for of_stretch in windows:
            for batch in prints_of(weights.encoder, recording, of_stretch):
                if request.cancelled():
                    return NOBODY
                prints.append(batch)
        if not prints:
            return NOBODY
        sure = np.array([window.frames >= SURE_FRAMES for of_stretch in windows for window in of_stretch])
        clusters = iter(cluster(np.concatenate(prints), sure, count).tolist())
        parts = [
            part
            for stretch, of_stretch in zip(stretches, windows, strict=True)
            for part in voiced_parts(stretch, of_stretch, list(islice(clusters, len(of_stretch))))
        ]
        return TaskResult(speaker_turns=speaker_turns(parts), sample_rate=SAMPLE_RATE)

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Say who speaks when; no turn is certain before the last voice was heard, so all come at once."""
        del audio  # live audio was refused
        result = self.run(request)
        if result.speaker_turns:
            yield TurnsDelta(result.speaker_turns)
        yield Final(result)

    def _count(self, request: TaskRequest) -> SpeakerCount:
        options = self._options
        exact = options.integer(request, "num_speakers", 0)
        fewest = options.integer(request, "min_speakers", exact or 1)
        most = options.integer(request, "max_speakers", exact or max(DEFAULT_MOST, fewest))
        if fewest > most:
            raise InvalidRequest("min_speakers must not be over max_speakers", param="min_speakers")
        if exact and (fewest, most) != (exact, exact):
            raise InvalidRequest("num_speakers goes without min_speakers and max_speakers", param="num_speakers")
        return SpeakerCount(fewest, most, options.number(request, "threshold", DEFAULT_THRESHOLD))


def _stretches(detector: "InferenceSession", recording: Recording, request: TaskRequest) -> list[Stretch]:
    """Where somebody speaks; of a request that is cancelled, as far as it was heard."""
    listener = SpeechListener(detector, LISTENING)
    blocks = takewhile(lambda _: not request.cancelled(), recording.blocks())
    edges = [edge for block in blocks for edge in listener.hear(block)]
    edges += listener.finish()
    return list(stretches_of(spans_of(edges), recording.pcm.frames))


def _require_mono(pcm: Pcm | None) -> Pcm:
    if pcm is None:
        raise InvalidRequest("there is no audio", param="audio")
    if (pcm.rate, pcm.channels) != (SAMPLE_RATE, 1):
        raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
    return pcm
