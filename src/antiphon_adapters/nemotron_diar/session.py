"""One slot of a diarizer: checks a request and tells who speaks when, live or of a recording. It owns no weights."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spool import pieces_of
from antiphon.vocabulary.tasks import (
    Final,
    Interface,
    SpeakerTurn,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TurnsDelta,
)
from antiphon_adapters.nemotron_diar.profile import SAMPLE_RATE
from antiphon_adapters.stateless import StatelessSession

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from antiphon_adapters.nemotron_diar.hearing import Hearing
    from antiphon_adapters.nemotron_diar.network import Network  # noqa: F401 (the session's weights)

FAMILY = "nemotron_diar"

PIECE_SAMPLES = SAMPLE_RATE
"""A recording is heard in pieces of a second, so that its length costs no memory."""


class NemotronDiarSession(StatelessSession["Network"]):
    """A session over shared weights; each stream has a state of its own, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.DIAR
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = SAMPLE_RATE
    channels = 1

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused. Raises InvalidRequest."""
        if request.live:
            return
        if request.audio is None:
            raise InvalidRequest("there is no audio", param="audio")
        self._require_shape(request.audio)

    def run(self, request: TaskRequest) -> TaskResult:
        """Diarize the whole recording, turns by start and speaker; a cancelled request ends after the step at hand."""
        turns = [turn for found in self._found(request, None) for turn in found]
        return _result(sorted(turns, key=lambda turn: (turn.start_sample, turn.speaker_id)))

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Diarize a recording, or what is still being spoken: a `TurnsDelta` where turns become certain, then all.

        The turns come in the order in which they became certain.
        """
        turns: list[SpeakerTurn] = []
        for found in self._found(request, audio):
            if found:
                turns += found
                yield TurnsDelta(tuple(found))
        yield Final(_result(turns))

    def _found(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[list[SpeakerTurn]]:
        """Yield what each step of the model makes certain."""
        from antiphon_adapters.nemotron_diar.hearing import Hearing

        self.prepare(request)
        hearing = Hearing(self._open)
        for found in self._steps(hearing, request.audio, audio):
            yield found
            if request.cancelled():
                return

    def _steps(
        self, hearing: "Hearing", recording: Pcm | None, audio: Iterator[AudioChunk] | None
    ) -> Iterator[list[SpeakerTurn]]:
        for pcm in self._pieces(recording, audio):
            yield from hearing.feed(_samples(pcm))
        yield from hearing.finish()

    def _pieces(self, recording: Pcm | None, audio: Iterator[AudioChunk] | None) -> Iterator[Pcm]:
        """All audio, in pieces that are not long."""
        for pcm in (recording,) if audio is None else (chunk.pcm for chunk in audio):
            if pcm is not None:
                self._require_shape(pcm)
                for piece in pieces_of(pcm, PIECE_SAMPLES):
                    yield Pcm(piece, SAMPLE_RATE)

    def _require_shape(self, pcm: Pcm) -> None:
        if (pcm.rate, pcm.channels) != (SAMPLE_RATE, self.channels):
            raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")


def _samples(pcm: Pcm) -> "NDArray[np.float32]":
    import numpy as np

    return np.frombuffer(pcm.samples.cast("B"), np.float32)


def _result(turns: list[SpeakerTurn]) -> TaskResult:
    return TaskResult(speaker_turns=tuple(turns), sample_rate=SAMPLE_RATE)
