"""Small validations for tests: of the suspect engines, in servers that are forked from one warm interpreter."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import suspect_engines
from antiphon.validation.evidence import Check, CheckName, Evidence
from antiphon.validation.facts import Surroundings
from antiphon.validation.inputs import Inputs
from antiphon.validation.plan import Plan
from antiphon.validation.questions import Input
from antiphon.validation.run import run_validation
from antiphon.validation.server import Opened
from antiphon.validation.site import Subject
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task
from server_nursery import Forked, shared_nursery

TESTS = Path(__file__).parent
HANG_GUARD_S = 60.0
SMALL = Plan((2,), (Mode.OFFLINE,), starts=1, warm_waves=5, warm_waves_at_most_slots=6, reference_starts=1)
INPUTS = Inputs(
    good=tuple(Input(text, {"text": text}) for text in ("one", "two", suspect_engines.REFUSED, "three")),
    bad=(Input("odd-option", {"text": "one", "options": {"odd": 1}}), Input("number", {"text": "4"})),
)


@contextmanager
def forked_server(config: Path, families: Sequence[str]) -> Iterator[Opened]:
    """Run a server that the audit list does not bind, without the imports that a new process would do."""
    flags = [word for family in families for word in ("--family", family)]
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = shared_nursery().start(
        ["antiphon", "--config", str(config), *flags],
        cwd=config.parent,
        env={**os.environ, "PYTHONPATH": path},
        module="antiphon.validation.server",
    )
    with process:
        try:
            yield Opened(_url(process), process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait(HANG_GUARD_S)
        finally:
            process.kill()  # harmless to one that has ended


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


def _url(process: Forked) -> str:
    """Where a server listens; what it says later fits into the pipe."""
    hang_guard = threading.Timer(HANG_GUARD_S, process.kill)
    hang_guard.start()
    try:
        said = process.stderr.readline()
    finally:
        hang_guard.cancel()
    assert "listening on" in said, f"the server did not come to listen: {said}{process.stderr.read()}"
    return said.split()[-1]
