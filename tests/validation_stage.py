"""Small validations for tests: of the suspect engines, in servers that are forked from one warm interpreter."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import suspect_engines
from antiphon.validation.evidence import Check, CheckName, Evidence
from antiphon.validation.facts import Surroundings
from antiphon.validation.inputs import Inputs
from antiphon.validation.plan import Plan
from antiphon.validation.questions import Input
from antiphon.validation.run import run_validation
from antiphon.validation.server import Opened, serve_unlisted
from antiphon.validation.site import Subject
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task

HANG_GUARD_S = 60.0
SMALL = Plan((2,), (Mode.OFFLINE,), starts=1, warm_waves=2, warm_waves_at_most_slots=4, reference_starts=1)
INPUTS = Inputs(
    good=tuple(Input(text, {"text": text}) for text in ("one", "two", suspect_engines.REFUSED, "three")),
    bad=(Input("odd-option", {"text": "one", "options": {"odd": 1}}), Input("number", {"text": "4"})),
)

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["antiphon.validation.server", "suspect_engines"])


@contextmanager
def forked_server(config: Path, families: Sequence[str]) -> Iterator[Opened]:
    """Run a server that the audit list does not bind, without the imports that a new process would do."""
    here, there = _forks.Pipe()
    with here, there:
        process = _forks.Process(target=_serve, args=(config, list(families), there))
        process.start()
        assert here.poll(HANG_GUARD_S), "the server did not come to listen"
        assert process.pid is not None
        yield Opened(here.recv(), process.pid)
        process.terminate()
        process.join(HANG_GUARD_S)


def suspect(name: str, folder: Path) -> Subject:
    """One of the suspect engines as a model, in a thread of its server."""
    adapter = getattr(suspect_engines, name)
    spec = ModelSpec("suspect", adapter.family, str(folder), Task.TTS, isolation=Isolation.THREAD)
    return Subject(spec, (f"suspect_engines:{name}",), forked_server)


def validated(subject: Subject, plan: Plan = SMALL) -> Evidence:
    """What a validation says of a subject."""
    return run_validation(subject, INPUTS, plan, Surroundings({}, {}, ()), lambda progress: None)


def check_of(evidence: Evidence, name: CheckName) -> Check:
    """One verdict of the only mode and count."""
    (run,) = evidence.modes
    (count,) = run.counts
    (check,) = [it for it in count.checks if it.name is name]
    return check


def _serve(config: Path, families: Sequence[str], there: Connection) -> None:
    serve_unlisted(config, families, there.send)
