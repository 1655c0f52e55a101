"""The pytest plugin of the conformance suite: who may claim which cell, and what a run proves. It knows no server.

A test claims a cell with `@cell("ops.ready.unload")`. The `conftest.py` above all tests registers a `ConformanceSuite`,
where the process that judges reads it too: with pytest-xdist that process collects no test.
"""

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance_cells import Cell
from conformance_claims import MARK, Collected, collect
from conformance_page import render

WRITE_OPTION = "--write-conformance"
ONCE_SLOTS = 2
"""What `slots` is in a cell without slots: the smallest count that leaves one spare."""


def cell(cell_id: str, level: str = "HTTP") -> pytest.MarkDecorator:
    """Claim a cell for a test. The test must be named after it: `test_ops_ready_unload`, or `..._and_more_words`."""
    return getattr(pytest.mark, MARK)(cell_id, level)


def add_options(parser: pytest.Parser) -> None:
    """What a run understands."""
    parser.addoption(
        WRITE_OPTION,
        action="store_true",
        help="write the page that the whole conformance suite generates; with --collect-only nothing is run for it",
    )


@dataclass(slots=True)
class _Outcome:
    """What became of one item."""

    ended: bool = False
    faults: list[str] = field(default_factory=list)

    @property
    def held(self) -> bool:
        return self.ended and not self.faults


class ConformanceSuite:
    """The suite below one directory. `page` is the generated table, `command` the line that writes it.

    A wrong claim ends the run before any test. The rules about the whole, i.e. that no cell is unclaimed and that the
    page is what the run says, hold once a test module exists, and when every test of the directory is to run.

    With pytest-xdist every worker collects and sends what it collected; the controller has their tests' reports, and
    judges once.
    """

    def __init__(
        self, directory: Path, page: Path, cells: Mapping[str, Cell], isolations: Sequence[str], command: str
    ) -> None:
        self._directory = directory
        self._page = page
        self._cells = cells
        self._isolations = isolations
        self._command = command
        self._modules: set[Path] = set()
        self._narrowed = False
        self._collected = Collected()
        self._outcomes: dict[str, _Outcome] = defaultdict(_Outcome)
        self._faults: list[str] = []
        self._verdict: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the claim's marker known."""
        config.addinivalue_line("markers", f"{MARK}(id, level): the cell that a test claims")

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Note which modules are read."""
        if isinstance(collector, pytest.Module) and self._owns(collector):
            self._modules.add(collector.path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a claiming test at its cell's slot counts and in every isolation."""
        marker = metafunc.definition.get_closest_marker(MARK)
        claimed = self._cells.get(marker.args[0]) if marker else None
        if claimed is None:
            return
        if "isolation" in metafunc.fixturenames:
            metafunc.parametrize("isolation", self._isolations)
        if "slots" in metafunc.fixturenames:
            counts = claimed.slots or (ONCE_SLOTS,)
            metafunc.parametrize("slots", counts, ids=[f"{it}slots" if claimed.slots else "once" for it in counts])

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that not every test is to run."""
        self._narrowed = self._narrowed or any(self._owns(item) for item in items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Refuse wrong claims: raises UsageError, which ends the run; a worker offers no test, and tells why."""
        whole = self._collected_whole(session)
        items = [item for item in session.items if self._owns(item)]
        self._collected = collect(items, self._cells, whole=whole, every_cell=whole and bool(self._modules))
        sent = getattr(session.config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = self._collected.plain()
            if self._collected.faults:
                session.items.clear()
        elif self._collected.faults:
            raise pytest.UsageError("\n".join(self._wrong()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take what a worker collected: each the same, or xdist fails the run. One that died tells nothing."""
        sent = getattr(node, "workeroutput", {}).get(_SENT)
        if sent is not None:
            self._collected = Collected.from_plain(sent)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what keeps a cell from being proven: anything but a plain pass."""
        outcome = self._outcomes[report.nodeid]
        if hasattr(report, "wasxfail"):
            outcome.faults.append(f"{report.nodeid} is expected to fail")
        elif not report.passed:
            outcome.faults.append(f"{report.nodeid} {report.outcome} in its {report.when}")
        outcome.ended = outcome.ended or report.when == "teardown"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run fail for each cell that it did not prove, and for a stale page."""
        config = session.config
        if hasattr(config, "workeroutput") or session.exitstatus not in _JUDGED:
            return
        if config.option.collectonly:
            self._write_collected(session)
            return
        if self._collected.faults:
            self._faults += self._wrong()
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        claims = self._collected.claims()
        claimed = [(it.cell_id, self._outcomes[it.nodeid]) for it in self._collected.claimings]
        self._faults += [f"{cell_id}: {fault}" for cell_id, outcome in claimed for fault in outcome.faults]
        broken = {cell_id for cell_id, outcome in claimed if not outcome.held}
        self._faults += self._settle_page(
            complete=self._collected.whole and not broken, write=bool(config.getoption(WRITE_OPTION, default=False))
        )
        pending = sum(it.pending is not None for it in self._cells.values())
        if claims:
            held = len(claims) - len(broken)
            self._verdict.append(f"{held} of {len(self._cells) - pending} cells held, {pending} pending")
        if self._faults:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the run proved, and what not."""
        if self._verdict or self._faults:
            terminalreporter.section("conformance", "-")
            for line in [*self._faults, *self._verdict]:
                terminalreporter.write_line(line)

    def _write_collected(self, session: pytest.Session) -> None:
        """Write the page if asked to; the next whole run proves what it says, or fails."""
        if session.config.getoption(WRITE_OPTION, default=False):
            self._faults += self._settle_page(complete=self._collected.whole, write=True)
            if self._faults:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _owns(self, node: pytest.Item | pytest.Collector) -> bool:
        return self._directory in node.path.parents

    def _collected_whole(self, session: pytest.Session) -> bool:
        """Whether all tests of the directory are to run."""
        config = session.config
        named = {(config.invocation_params.dir / argument).resolve() for argument in config.args}
        if named.isdisjoint({self._directory, *self._directory.parents}):
            return False
        missing = set(self._directory.rglob("test_*.py")) - self._modules
        chosen = config.getoption("keyword") or config.getoption("lf", default=False)
        return not (self._narrowed or chosen or missing or session.testsfailed)

    def _wrong(self) -> list[str]:
        return ["the conformance suite is wrong:", *(f"  {fault}" for fault in self._collected.faults)]

    def _settle_page(self, *, complete: bool, write: bool) -> list[str]:
        """Write the page or compare it, if all of the suite was collected and nothing that ran has failed."""
        if not complete:
            return [f"{self._page.name} is written only for the whole suite, and not if a cell fails"] if write else []
        wanted = render(self._cells, self._collected.claims(), self._page, self._command)
        if write:
            self._page.write_text(wanted, encoding="utf-8")
            self._verdict.append(f"{self._page.name} is written")
            return []
        found = self._page.read_text(encoding="utf-8") if self._page.exists() else ""
        if found == wanted:
            return []
        changes = difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), "committed", "this run", n=0, lineterm=""
        )
        return [f"{self._page.name} is stale; write it with: {self._command}", *list(changes)[:_SHOWN_CHANGES]]


_SENT = "conformance"
"""Under which name a worker sends what it collected."""

_JUDGED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)

_SHOWN_CHANGES = 12
"""How many lines of a stale page's difference are shown."""
