"""The cases: which sides stand against each other, and what we mean to reach. docs/bench.md gives the reasons."""

from collections.abc import Callable, Mapping

from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.direct import DirectWork
from antiphon.bench.first_audio import first_audio
from antiphon.bench.gates import GateCycle, SemaphoreCycle
from antiphon.bench.isolation import isolated_engines, isolation, worker_start
from antiphon.bench.lab import Lab, Server, configured
from antiphon.bench.load import drive
from antiphon.bench.material import CLIENTS, NOOP, SENTENCES, clips_of, speech_request, transcription_request
from antiphon.bench.observation import observation
from antiphon.bench.samples import Basis
from antiphon.bench.sides import BareImports, DirectSide, ServerSide, ServerStart
from antiphon.bench.threads_auto import threads_auto
from antiphon.config import usable_cores
from antiphon.packages import InstalledModel
from antiphon.vocabulary.errors import AntiphonError

_WARM_UP = 100

_WAITERS = (0, 1000, 100_000)
_CALLERS = (1, 2, 4)


def noop(lab: Lab) -> Case:
    """A request that has nothing to do, against a route that does nothing: what the server itself costs."""
    ours, bare = _null_server(lab), lab.bare()
    drive(bare.url, [NOOP] * _WARM_UP, CLIENTS)
    requests = [NOOP] * lab.scale.noop_requests
    sides: list[Side] = []
    comparisons: list[Comparison] = []
    for clients, target in ((CLIENTS, 0.7), (1, None)):
        names = f"no-op, {clients} clients", f"bare route, {clients} clients"
        for name, server in zip(names, (ours, bare), strict=True):
            sides.append(ServerSide(name, server.process, server.url, requests, clients))
        comparisons.append(
            Comparison(f"no-op / bare route, {clients} clients", names[0], names[1:], Sense.RATE, Basis.CPU, target)
        )
    return Case("noop", tuple(sides), tuple(comparisons))


def gate(lab: Lab) -> Case:
    """Admission alone, with a crowd behind it."""
    server, cycles = _null_server(lab), lab.scale.gate_cycles
    request = "no-op request"
    requests = [NOOP] * lab.scale.noop_requests
    sides: list[Side] = [ServerSide(request, server.process, server.url, requests, CLIENTS)]
    comparisons: list[Comparison] = []
    for waiters in _WAITERS:
        ours, theirs = f"gate, {waiters:,} waiters", f"semaphore, {waiters:,} waiters"
        sides += [GateCycle(ours, waiters, cycles), SemaphoreCycle(theirs, waiters, cycles)]
        comparisons.append(Comparison(f"gate / semaphore, {waiters:,} waiters", ours, (theirs,), Sense.COST, Basis.CPU))
    empty, some, many = (f"gate, {waiters:,} waiters" for waiters in _WAITERS)
    comparisons += [
        Comparison("gate, 100,000 waiters / none", many, (empty,), Sense.COST, Basis.CPU, 2.0),
        Comparison("gate, no waiters / no-op request", empty, (request,), Sense.COST, Basis.CPU, 0.03),
        Comparison("gate, 1,000 waiters / no-op request", some, (request,), Sense.COST, Basis.CPU, 0.03),
    ]
    return Case("gate", tuple(sides), tuple(comparisons))


def startup(lab: Lab) -> Case:
    """From the command to a server that listens, its models lazy, against the imports that it cannot do without."""
    models = [lab.null_model()]
    for family in ("piper", "whisper"):
        try:
            models.append(configured(lab.installed(family)))
        except AntiphonError:  # a server without this engine starts as well
            continue
    arguments = lab.serve_arguments([{**model, "lazy": True} for model in models], parallel=False)
    sides = ServerStart("antiphon serve, lazy", arguments), BareImports("bare imports")
    for side in sides:
        side.measure()  # the first start of each reads its files from the disk
    title = f"start-up / imports of {', '.join(BareImports.MODULES)}"
    comparison = Comparison(title, sides[0].name, (sides[1].name,), Sense.COST, Basis.WALL)
    return Case("startup", sides, (comparison,))


def piper(lab: Lab) -> Case:
    """Speech through the server."""
    model = lab.installed("piper")
    texts = SENTENCES[: lab.scale.sentences]
    work = DirectWork(model.family, str(model.path), model.task, _CALLERS, texts=texts)

    def requests(model_id: str) -> list[bytes]:
        return [speech_request(model_id, text) for text in texts]

    return _engine_case(lab, model, work, requests, (1.7, 1.1))


def whisper(lab: Lab) -> Case:
    """Transcription through the server, of clips that Piper speaks first."""
    model, clips = lab.installed("whisper"), clips_of(lab)
    files = tuple(str(lab.file("clip.wav", clip)) for clip in clips)
    work = DirectWork(model.family, str(model.path), model.task, _CALLERS, clips=files)

    def requests(model_id: str) -> list[bytes]:
        return [transcription_request(model_id, clip) for clip in clips]

    return _engine_case(lab, model, work, requests, (None, None))


CASES: Mapping[str, Callable[[Lab], Case]] = {
    "noop": noop,
    "gate": gate,
    "observation": observation,
    "startup": startup,
    "piper": piper,
    "whisper": whisper,
    "first-audio": first_audio,
    "isolation": isolation,
    "isolated-engines": isolated_engines,
    "worker-start": worker_start,
    "threads-auto": threads_auto,
}


def _engine_case(
    lab: Lab,
    model: InstalledModel,
    work: DirectWork,
    requests: Callable[[str], list[bytes]],
    parallel_targets: tuple[float | None, float | None],
) -> Case:
    """One engine three ways: called directly, through the parallel runtime, and through the serial one."""
    cores = usable_cores()
    settings = sorted({1, cores})
    parallel = lab.serve(
        [{**configured(model, f"slots-{slots}"), "slots": slots, "threads": 1} for slots in _CALLERS], parallel=True
    )
    serial = lab.serve(
        [{**configured(model, f"threads-{threads}"), "threads": threads} for threads in settings], parallel=False
    )
    direct = lab.direct(work)
    sides: list[Side] = []
    comparisons: list[Comparison] = []

    def add(name: str, server: Server, model_id: str, clients: int) -> str:
        sides.append(server.warm_side(name, requests(model_id), clients))
        return name

    for callers in _CALLERS:
        plain = f"direct, {callers} callers"
        sides.append(DirectSide(plain, direct, callers, len(requests(""))))
        served = add(f"server, {callers} slots", parallel, f"slots-{callers}", callers)
        target = 0.95 if callers == 2 and cores >= 2 else None
        title = f"{model.family}: server / direct, {callers} at a time"
        comparisons.append(Comparison(title, served, (plain,), Sense.RATE, Basis.WALL, target))
    one_at_a_time = tuple(
        add(f"serial, {threads} threads", serial, f"threads-{threads}", clients=2) for threads in settings
    )
    targets = parallel_targets if cores >= 2 else (None, None)
    for title, references, target in (
        ("2 slots / serial runtime, 1 thread", one_at_a_time[:1], targets[0]),
        ("2 slots / serial runtime at its best", one_at_a_time, targets[1]),
    ):
        comparisons.append(
            Comparison(f"{model.family}: {title}", "server, 2 slots", references, Sense.RATE, Basis.WALL, target)
        )
    return Case(model.family, tuple(sides), tuple(comparisons))


def _null_server(lab: Lab) -> Server:
    server = lab.serve([lab.null_model()], parallel=True)
    drive(server.url, [NOOP] * _WARM_UP, CLIENTS)
    return server
