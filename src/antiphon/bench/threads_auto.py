"""The case of `threads: auto`: what all cores give one client, and that they cost several clients nothing."""

from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.direct import DirectWork
from antiphon.bench.lab import Lab, configured
from antiphon.bench.material import SENTENCES, speech_request
from antiphon.bench.samples import Basis
from antiphon.bench.sides import DirectSide
from antiphon.config import usable_cores

_CROWDS = (2, 8)
_SLOTS = 2


def threads_auto(lab: Lab) -> Case:
    """Piper under `auto` against one thread a call: in the server for one client, called directly for two and eight."""
    model, cores = lab.installed("piper"), usable_cores()
    texts = SENTENCES[: lab.scale.sentences]
    settings: list[dict[str, object]] = [
        {**configured(model, name), "slots": _SLOTS, "threads": threads}
        for name, threads in (("auto", "auto"), ("one", 1))
    ]
    server = lab.serve(settings, parallel=True)
    direct = lab.direct(DirectWork(model.family, str(model.path), model.task, _CROWDS, texts=texts))
    sides: list[Side] = []
    comparisons: list[Comparison] = []

    def add(side: Side) -> str:
        sides.append(side)
        return side.name

    def served(name: str, clients: int) -> str:
        requests = [speech_request(name, text) for text in texts]
        return add(server.warm_side(f"server, threads {name}, {clients} clients", requests, clients))

    def compare(title: str, ours: str, theirs: str, target: float) -> None:
        reached = target if cores >= _SLOTS else None
        comparisons.append(Comparison(title, ours, (theirs,), Sense.RATE, Basis.WALL, reached))

    compare("auto / 1 thread, 1 client", served("auto", 1), served("one", 1), 1.4)
    for crowd in _CROWDS:
        plain = add(DirectSide(f"direct, 1 thread, {crowd} callers", direct, crowd, len(texts)))
        compare(f"auto / direct, {crowd} at a time", served("auto", crowd), plain, 0.97)
    return Case("threads-auto", tuple(sides), tuple(comparisons))
