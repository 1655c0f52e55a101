"""`docs/conformance.md`: which cell holds by which tests, as a run found it. It runs nothing and judges nothing."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from conformance_cells import Cell

TITLES = {
    "state": "States",
    "phase": "Phases of a request",
    "ops": "Operations crossed with the state of the model",
    "two": "Situations of two models",
    "order": "Orders of arrival",
    "fail": "Boundaries of failure",
    "time": "Timeouts, disconnects and shutdown",
    "rule": "Rules",
}
COLUMNS = ("cell", "requirement", "level", "tests", "slots", "isolation", "result", "upstream", "exceeds")


@dataclass(slots=True)
class Claim:
    """What tests one cell: the functions and their files, at which levels and where they ran."""

    levels: set[str] = field(default_factory=set)
    tests: dict[str, Path] = field(default_factory=dict)
    slots: set[int] = field(default_factory=set)
    isolations: set[str] = field(default_factory=set)


def render(cells: Mapping[str, Cell], claims: Mapping[str, Claim], page: Path, command: str) -> str:
    """The page, for a run in which every claimed cell held. Equal runs give equal text."""
    return "\n".join(_lines(list(cells.values()), claims, page, command)) + "\n"


def _lines(cells: Sequence[Cell], claims: Mapping[str, Claim], page: Path, command: str) -> Iterator[str]:
    yield "# Conformance"
    yield ""
    yield "The cells of the lifecycle contract, and the tests that exercise them. Generated from a run of the suite:"
    yield f"`{command}`. [testing-conformance.md](testing-conformance.md) says how the tests are written."
    yield ""
    yield "D: exercised directly by the tests named, which held at every slot count and isolation shown. Upstream is"
    yield "the label that the contract's authors give their own tests: D direct, P partial, U none; two labels belong"
    yield "to two halves of the text and are counted as the first. Exceeds is what antiphon promises where the"
    yield "contract states a limitation; the tests hold it to that."
    yield ""
    yield from _summary(cells, claims)
    for group, members in groupby(cells, lambda cell: cell.group):
        yield ""
        yield f"## {TITLES.get(group, group)}"
        yield ""
        yield _row(COLUMNS)
        yield _row(["---"] * len(COLUMNS))
        for cell in members:
            yield _row(_columns(cell, claims.get(cell.id), page))


def _summary(cells: Sequence[Cell], claims: Mapping[str, Claim]) -> Iterator[str]:
    header = ("cells", "all", "D", "pending", "no test yet", "upstream: D", "P", "U", "unlabelled")
    yield _row(header)
    yield _row(["---"] + ["---:"] * (len(header) - 1))
    for group, members in groupby(cells, lambda cell: cell.group):
        yield _row(_counts(TITLES.get(group, group), list(members), claims))
    yield _row(_counts("**all**", cells, claims))


def _counts(title: str, cells: Sequence[Cell], claims: Mapping[str, Claim]) -> list[str]:
    direct = sum(cell.id in claims for cell in cells)
    pending = sum(cell.pending is not None for cell in cells)
    upstream = Counter(cell.upstream[:1] for cell in cells)
    numbers = [len(cells), direct, pending, len(cells) - direct - pending]
    numbers += [upstream[label] for label in ("D", "P", "U", "")]
    return [title, *map(str, numbers)]


def _columns(cell: Cell, claim: Claim | None, page: Path) -> list[str]:
    tests = [] if claim is None else [_link(name, file, page) for name, file in sorted(claim.tests.items())]
    slots = sorted(claim.slots) if claim else cell.slots
    return [
        f"`{cell.id}`",
        cell.requirement,
        ", ".join(sorted(claim.levels)) if claim else "",
        "<br>".join(tests),
        ", ".join(map(str, slots)) if cell.slots else "once",
        ", ".join(sorted(claim.isolations)) if claim else "",
        _result(cell, claim),
        cell.upstream,
        cell.exceeds,
    ]


def _result(cell: Cell, claim: Claim | None) -> str:
    if claim is None:
        return "no test yet" if cell.pending is None else f"pending: step {cell.pending}"
    return f"D. Pending: {cell.partly_pending}" if cell.partly_pending else "D"


def _link(name: str, file: Path, page: Path) -> str:
    return f"[{name}]({Path(os.path.relpath(file, page.parent)).as_posix()})"


def _row(columns: Sequence[str]) -> str:
    return f"| {' | '.join(column.replace('|', chr(92) + '|') for column in columns)} |"
