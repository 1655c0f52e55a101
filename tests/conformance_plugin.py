"""The pytest plugin of the conformance suite: who may claim which cell, and what a run proves. It knows no server.

A test claims a cell with `@cell("ops.ready.unload")`. Its directory's `conftest.py` registers a `ConformanceSuite`.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance_cells import Cell
from conformance_page import Claim, render

LEVELS = ("HTTP", "command", "unit")
"""Where a test takes hold: at a server's socket, at a command of its own, or below HTTP."""

WRITE_OPTION = "--write-conformance"
ONCE_SLOTS = 2
"""What `slots` is in a cell without slots: the smallest count that leaves one spare."""

_MARK = "conformance_cell"


def cell(cell_id: str, level: str = "HTTP") -> pytest.MarkDecorator:
    """Claim a cell for a test. The test must be named after it: `test_ops_ready_unload`, or `..._and_more_words`."""
    return getattr(pytest.mark, _MARK)(cell_id, level)


def add_options(parser: pytest.Parser) -> None:
    """What a run of the suite's own directory understands."""
    parser.addoption(WRITE_OPTION, action="store_true", help="write the page that the whole suite generates")


@dataclass(slots=True)
class _Outcome:
    """What became of one item."""

    cell_id: str
    ended: bool = False
    faults: list[str] = field(default_factory=list)


class ConformanceSuite:
    """The suite below one directory. `page` is the generated table, `command` the line that writes it.

    A wrong claim ends the run before any test. The rules about the whole, i.e. that no cell is unclaimed and that the
    page is what the run says, hold once a test module exists, and when every test of the directory is to run.
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
        self._outcomes: dict[str, _Outcome] = {}
        self._claims: dict[str, Claim] = {}
        self._whole = False
        self._narrowed = False
        self._faults: list[str] = []
        self._verdict: list[str] = []

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Note which modules are read."""
        if isinstance(collector, pytest.Module) and self._owns(collector):
            self._modules.add(collector.path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a claiming test at its cell's slot counts and in every isolation."""
        marker = metafunc.definition.get_closest_marker(_MARK)
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

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Refuse wrong claims; raises UsageError, which ends the run."""
        items = [item for item in session.items if self._owns(item)]
        self._whole = self._collected_whole(session)
        faults = [fault for item in items for fault in self._faults_of(item)]
        if not faults:
            for item in items:
                self._note(item)
            faults += self._faults_of_names()
            if self._whole and self._modules:
                faults += self._unclaimed()
        if faults:
            unique = dict.fromkeys(faults)  # the variants of one test share theirs
            raise pytest.UsageError("the conformance suite is wrong:\n" + "\n".join(f"  {fault}" for fault in unique))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what keeps a cell from being proven: anything but a plain pass."""
        outcome = self._outcomes.get(report.nodeid)
        if outcome is None:
            return
        if hasattr(report, "wasxfail"):
            outcome.faults.append(f"{report.nodeid} is expected to fail")
        elif not report.passed:
            outcome.faults.append(f"{report.nodeid} {report.outcome} in its {report.when}")
        outcome.ended = outcome.ended or report.when == "teardown"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run fail for each cell that it did not prove, and for a stale page."""
        config = session.config
        if config.option.collectonly or session.exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            return
        self._faults += [f"{it.cell_id}: {fault}" for it in self._outcomes.values() for fault in it.faults]
        self._faults += self._settle_page(write=bool(config.getoption(WRITE_OPTION, default=False)))
        held = len(self._claims) - len({it.cell_id for it in self._outcomes.values() if it.faults or not it.ended})
        pending = sum(it.pending is not None for it in self._cells.values())
        if self._claims:
            self._verdict.append(f"{held} of {len(self._cells) - pending} cells held, {pending} pending")
        if self._faults:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the run proved, and what not."""
        if self._verdict or self._faults:
            terminalreporter.section("conformance", "-")
            for line in [*self._faults, *self._verdict]:
                terminalreporter.write_line(line)

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

    def _faults_of(self, item: pytest.Item) -> Iterator[str]:
        """What is wrong with one claim."""
        name, where = _function_name(item), _where(item)
        markers = list(item.iter_markers(_MARK))
        if len(markers) != 1:
            yield f"{where} claims {len(markers)} cells; it must claim one"
            return
        cell_id, level = markers[0].args
        claimed = self._cells.get(cell_id)
        if claimed is None:
            yield f"{where} claims {cell_id!r}, and there is no such cell"
            return
        if claimed.pending is not None:
            yield f"{where} claims {cell_id!r}, which is pending until step {claimed.pending}: take that out of its row"
        if not claimed.may_be_tested_by(name):
            yield f"{where} must be called {claimed.test_name}, or {claimed.test_name}_ and more words"
        if level not in LEVELS:
            yield f"{where} is at the level {level!r}, which is none of {', '.join(LEVELS)}"
        fixtures: Sequence[str] = getattr(item, "fixturenames", ())
        if claimed.slots and "slots" not in fixtures:
            yield f"{where} has no `slots`, and {cell_id!r} runs at {', '.join(map(str, claimed.slots))} slots"
        if level == "HTTP" and "isolation" not in fixtures:
            yield f"{where} has no `isolation`, and HTTP cells run in each"

    def _note(self, item: pytest.Item) -> None:
        cell_id, level = next(item.iter_markers(_MARK)).args
        claim = self._claims.setdefault(cell_id, Claim())
        claim.levels.add(level)
        claim.tests.setdefault(_function_name(item), item.path)
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if "slots" in parameters:
            claim.slots.add(parameters["slots"])
        if "isolation" in parameters:
            claim.isolations.add(parameters["isolation"])
        self._outcomes[item.nodeid] = _Outcome(cell_id)

    def _faults_of_names(self) -> Iterator[str]:
        """Which cells have two tests of one name, or, where the suite is whole, none that bears theirs."""
        files: dict[tuple[str, str], set[str]] = defaultdict(set)
        for nodeid, outcome in self._outcomes.items():
            function = nodeid.partition("[")[0]
            files[outcome.cell_id, function.rpartition("::")[2]].add(function)
        for (cell_id, _name), functions in files.items():
            if len(functions) > 1:
                yield f"{cell_id!r} is claimed twice: by {' and by '.join(sorted(functions))}"
        for cell_id, claim in self._claims.items():
            if self._whole and self._cells[cell_id].test_name not in claim.tests:
                yield f"{cell_id!r} has further tests, but none is called {self._cells[cell_id].test_name}"

    def _unclaimed(self) -> Iterator[str]:
        for cell_id, unclaimed in self._cells.items():
            if unclaimed.pending is None and cell_id not in self._claims:
                yield f"{cell_id!r} is claimed by no test"

    def _settle_page(self, *, write: bool) -> list[str]:
        """Write the page or compare it; only a whole run in which every cell held may do either."""
        proven = self._whole and all(it.ended and not it.faults for it in self._outcomes.values())
        if not proven:
            return [f"{self._page.name} is written only when the whole suite ran and held"] if write else []
        wanted = render(self._cells, self._claims, self._page, self._command)
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


_SHOWN_CHANGES = 12
"""How many lines of a stale page's difference are shown."""


def _function_name(item: pytest.Item) -> str:
    return item.originalname if isinstance(item, pytest.Function) else item.name


def _where(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
