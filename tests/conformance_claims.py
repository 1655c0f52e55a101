"""Which tests claim which cells, and what is wrong with that. It knows what was collected, and nothing of a run."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

import pytest

from conformance_cells import Cell
from conformance_page import Claim

LEVELS = ("HTTP", "command", "unit")
"""Where a test takes hold: at a server's socket, at a command of its own, or below HTTP."""

MARK = "conformance_cell"


@dataclass(frozen=True, slots=True)
class Claiming:
    """One item that claims a cell. `slots` and `isolation` are None where it has none."""

    nodeid: str
    function: str
    file: str
    cell_id: str
    level: str
    slots: int | None
    isolation: str | None


@dataclass(frozen=True, slots=True)
class Collected:
    """What the items of a run claim. `whole`: all tests of the suite are to run. With faults none may."""

    claimings: tuple[Claiming, ...] = ()
    whole: bool = False
    faults: tuple[str, ...] = ()

    def plain(self) -> tuple[object, ...]:
        """The same in tuples, strings and numbers, as one process can send it to another."""
        return astuple(self)

    @classmethod
    def from_plain(cls, plain: tuple[object, ...]) -> Self:
        """What `plain` was made of."""
        claimings, whole, faults = plain
        return cls(tuple(Claiming(*it) for it in claimings), whole, tuple(faults))

    def claims(self) -> dict[str, Claim]:
        """Each claimed cell, and what tests it."""
        claims: dict[str, Claim] = defaultdict(Claim)
        for it in self.claimings:
            claim = claims[it.cell_id]
            claim.levels.add(it.level)
            claim.tests.setdefault(it.function, Path(it.file))
            claim.slots |= {it.slots} - {None}
            claim.isolations |= {it.isolation} - {None}
        return dict(claims)


def collect(items: Sequence[pytest.Item], cells: Mapping[str, Cell], *, whole: bool, every_cell: bool) -> Collected:
    """What the items claim, with every fault of it. `every_cell`: a cell that none of them claims is a fault."""
    faults = [fault for item in items for fault in _faults_of(item, cells)]
    if faults:
        return Collected(whole=whole, faults=tuple(dict.fromkeys(faults)))  # the variants of one test share theirs
    collected = Collected(tuple(map(_claiming, items)), whole)
    faults = [*_claimed_twice(collected), *_without_a_clause(collected, cells)]
    if whole:
        faults += [*_without_their_test(collected, cells), *_clauses_without_their_tests(collected, cells)]
    if every_cell:
        faults += _unclaimed(collected, cells)
    return Collected(collected.claimings, whole, tuple(faults))


def _faults_of(item: pytest.Item, cells: Mapping[str, Cell]) -> Iterator[str]:
    """What is wrong with one claim."""
    name, where = _function_name(item), item.nodeid.partition("[")[0]
    markers = list(item.iter_markers(MARK))
    if len(markers) != 1:
        yield f"{where} claims {len(markers)} cells; it must claim one"
        return
    cell_id, level = markers[0].args
    claimed = cells.get(cell_id)
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


def _claiming(item: pytest.Item) -> Claiming:
    cell_id, level = next(item.iter_markers(MARK)).args
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return Claiming(
        item.nodeid,
        _function_name(item),
        str(item.path),
        cell_id,
        level,
        parameters.get("slots"),
        parameters.get("isolation"),
    )


def _function_name(item: pytest.Item) -> str:
    return item.originalname if isinstance(item, pytest.Function) else item.name


def _claimed_twice(collected: Collected) -> Iterator[str]:
    """Which cells have two tests of one name."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for it in collected.claimings:
        places[it.cell_id, it.function].add(it.nodeid.partition("[")[0])
    for (cell_id, _function), functions in places.items():
        if len(functions) > 1:
            yield f"{cell_id!r} is claimed twice: by {' and by '.join(sorted(functions))}"


def _without_their_test(collected: Collected, cells: Mapping[str, Cell]) -> Iterator[str]:
    """Which cells have tests, and none that bears their name."""
    for cell_id, claim in collected.claims().items():
        if cells[cell_id].test_name not in claim.tests:
            yield f"{cell_id!r} has further tests, but none is called {cells[cell_id].test_name}"


def _without_a_clause(collected: Collected, cells: Mapping[str, Cell]) -> Iterator[str]:
    """Which tests no clause names, of cells that list their clauses."""
    for cell_id, claim in collected.claims().items():
        if cells[cell_id].clauses:
            for function in sorted(claim.tests.keys() - cells[cell_id].clause_tests):
                yield f"{function} is named by no clause of {cell_id!r}: add it to the clauses that it asserts"


def _clauses_without_their_tests(collected: Collected, cells: Mapping[str, Cell]) -> Iterator[str]:
    """Which clauses name a test that does not exist, or that does not claim their cell."""
    claims = collected.claims()
    for cell_id, cell in cells.items():
        claimed = claims[cell_id].tests.keys() if cell_id in claims else set()
        for test in sorted(cell.clause_tests - claimed):
            yield f"a clause of {cell_id!r} names {test}, and no test of that name claims the cell"


def _unclaimed(collected: Collected, cells: Mapping[str, Cell]) -> Iterator[str]:
    claimed = {it.cell_id for it in collected.claimings}
    for cell_id, cell in cells.items():
        if cell.pending is None and cell_id not in claimed:
            yield f"{cell_id!r} is claimed by no test"
