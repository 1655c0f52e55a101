"""The cells of the lifecycle contract as a file states them: what is required, and at which slots. It runs nothing."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SLOT_COUNTS = (1, 2, 4)
"""Where a cell runs that does not say otherwise."""

ISOLATIONS: Mapping[str, Mapping[str, object]] = {it: {"isolation": it} for it in ("thread", "process")}
"""Where engines run, and every cell: each name with the settings of a server that has it."""

UPSTREAM_LABELS = frozenset({"", "D", "P", "U", "D and P", "D and U", "P and U"})
"""What the contract's authors say of their own evidence."""


class CellsFileError(ValueError):
    """The file of cells is wrong; the message says where."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a requirement, and the functions that assert it."""

    text: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; the fields are explained at the top of `cells.toml`. Empty `slots`: it runs once."""

    id: str
    requirement: str
    upstream: str = ""
    slots: tuple[int, ...] = SLOT_COUNTS
    exceeds: str = ""
    clauses: tuple[Clause, ...] = ()
    pending: int | None = None
    partly_pending: str = ""

    @property
    def group(self) -> str:
        """What kind of cell it is: the part of its id before the first dot."""
        return self.id.partition(".")[0]

    @property
    def test_name(self) -> str:
        """What its test is called."""
        return "test_" + self.id.replace(".", "_")

    @property
    def clause_tests(self) -> frozenset[str]:
        """The tests that some clause names."""
        return frozenset(test for clause in self.clauses for test in clause.tests)

    def may_be_tested_by(self, name: str) -> bool:
        """Whether a test of this name may claim the cell: its own test, or a further one with more words behind."""
        return name == self.test_name or name.startswith(f"{self.test_name}_")


def read_cells(file: Path) -> dict[str, Cell]:
    """All cells by id, in the file's order; raises CellsFileError."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return {cell_id: _cell(cell_id, fields) for cell_id, fields in table.items()}


def _cell(cell_id: str, fields: dict[str, object]) -> Cell:
    if "slots" in fields:
        fields = {**fields, "slots": tuple(fields["slots"])}
    if "clauses" in fields:
        fields = {**fields, "clauses": tuple(_clause(cell_id, clause) for clause in fields["clauses"])}
    try:
        cell = Cell(cell_id, **fields)
    except TypeError as error:
        raise CellsFileError(f"{cell_id}: {error}") from error
    if cell.upstream not in UPSTREAM_LABELS:
        raise CellsFileError(f"{cell_id}: the upstream label {cell.upstream!r} is none of {sorted(UPSTREAM_LABELS)}")
    if not set(cell.slots) <= set(SLOT_COUNTS):
        raise CellsFileError(f"{cell_id}: slots are some of {SLOT_COUNTS}; found {cell.slots}")
    if len(cell.clauses) == 1:
        raise CellsFileError(f"{cell_id}: a single clause says no more than the requirement; list several or none")
    for test in sorted(cell.clause_tests):
        if not cell.may_be_tested_by(test):
            raise CellsFileError(f"{cell_id}: {test} cannot test this cell, whose tests begin with {cell.test_name}")
    return cell


def _clause(cell_id: str, fields: dict[str, object]) -> Clause:
    if set(fields) != {"text", "tests"} or not fields["text"] or not fields["tests"]:
        raise CellsFileError(f"{cell_id}: clauses have a text and tests; found {fields}")
    return Clause(fields["text"], tuple(fields["tests"]))
