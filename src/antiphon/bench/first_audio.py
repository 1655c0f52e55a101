"""The case of the first sound: how soon a client hears a long text, against the bare synthesis of a sentence."""

import time
from collections.abc import Sequence

from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.direct import DirectWork
from antiphon.bench.lab import Lab, Server, configured
from antiphon.bench.load import Connection, drive
from antiphon.bench.material import SENTENCES, speech_request, stream_request
from antiphon.bench.samples import Basis, Sample
from antiphon.bench.sides import DirectSide
from antiphon.vocabulary.states import Isolation

_TEXT_SENTENCES = 10
_TARGET = 1.3


def first_audio(lab: Lab) -> Case:
    """Texts of ten sentences as streams, in both isolations."""
    model = lab.installed("piper")
    firsts = SENTENCES[: lab.scale.sentences]
    work = DirectWork(model.family, str(model.path), model.task, (1,), texts=firsts)
    direct = DirectSide("direct, first sentence", lab.direct(work), 1, len(firsts))
    configuration = {**configured(model), "threads": 1}
    streams = [stream_request(model.id, _text_from(number)) for number in range(len(firsts))]
    sides: list[Side] = [direct]
    comparisons: list[Comparison] = []
    for isolation in (Isolation.PROCESS, Isolation.THREAD):
        server = lab.serve([configuration], parallel=True, isolation=isolation)
        side = FirstAudioSide(f"first audio, {isolation}", server, streams, speech_request(model.id, firsts[0]))
        side.settle()
        sides.append(side)
        title = f"{side.name} / direct synthesis of the first sentence"
        comparisons.append(Comparison(title, side.name, (direct.name,), Sense.COST, Basis.WALL, _TARGET))
    return Case("first-audio", tuple(sides), tuple(comparisons))


class FirstAudioSide:
    """A server that is asked for streams, one at a time; each counts until the first byte of its sound is there.

    Then its client leaves. `settling`, a request that is answered whole, waits in the model's queue until the engine is
    free again: it is not measured.
    """

    def __init__(self, name: str, server: Server, streams: Sequence[bytes], settling: bytes) -> None:
        self.name = name
        self._server = server
        self._streams = streams
        self._settling = settling

    def settle(self) -> None:
        """Wait until the model is loaded and its engine has nothing to do."""
        drive(self._server.url, [self._settling], clients=1)

    def measure(self) -> Sample:
        """Ask for them all."""
        wall_s = cpu_s = 0.0
        for stream in self._streams:
            with Connection(self._server.url) as connection:
                before_s, started_s = self._server.process.cpu_s(), time.perf_counter()
                connection.begin(stream)
                wall_s += time.perf_counter() - started_s
                cpu_s += self._server.process.cpu_s() - before_s
            self.settle()
        return Sample(len(self._streams), wall_s, cpu_s)


def _text_from(first: int) -> str:
    """Ten sentences, of which this one is the first."""
    return " ".join(SENTENCES[number % len(SENTENCES)] for number in range(first, first + _TEXT_SENTENCES))
