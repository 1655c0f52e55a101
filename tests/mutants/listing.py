"""Mutants of the code as data: what is changed, and which tests must notice. It runs nothing."""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file under `src`, in which `old` occurs once.

    Each test of `kills`, or a test of each module there, must fail with it, in at least one of the variants that
    `select`, an expression for pytest's -k, leaves. `cells` are the conformance cells that rely on it.
    """

    name: str
    file: str
    old: str
    new: str
    kills: tuple[str, ...]
    select: str = ""
    cells: tuple[str, ...] = ()

    def applied_to(self, source: str) -> str:
        """The changed source; raises ValueError unless `old` occurs exactly once."""
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: what it replaces occurs {count} times in {self.file}")
        return source.replace(self.old, self.new)


def load_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """Every mutant of the TOML files in the folder, in their order."""
    return [_mutant(entry) for path in sorted(folder.glob("*.toml")) for entry in _entries(path)]


def faults_of(mutants: Iterable[Mutant], cells: Iterable[str] = (), root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the mutants themselves: names, code that has moved on, tests and cells that do not exist."""
    mutants, cells = list(mutants), list(cells)
    names: set[str] = set()
    for mutant in mutants:
        if mutant.name in names:
            yield f"{mutant.name}: another mutant has this name"
        names.add(mutant.name)
        try:
            ast.parse(mutant.applied_to((root / mutant.file).read_text()))
        except (ValueError, OSError, SyntaxError) as fault:
            yield f"{mutant.name}: {fault}"
        yield from (f"{mutant.name}: there is no test {test}" for test in mutant.kills if not _exists(test, root))
        yield from (f"{mutant.name}: there is no cell {cell}" for cell in mutant.cells if cells and cell not in cells)
        if not mutant.kills:
            yield f"{mutant.name}: no test is to kill it"
    claimed = {cell for mutant in mutants for cell in mutant.cells}
    yield from (f"no mutant is named for the cell {cell}" for cell in cells if cell not in claimed)


def _entries(path: Path) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = tomllib.loads(path.read_text())["mutant"]
    return entries


def _mutant(entry: dict[str, object]) -> Mutant:
    listed = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Mutant(**listed)  # type: ignore[arg-type]  # a wrong key or type is a fault of the file, told by Python


def _exists(test: str, root: Path) -> bool:
    file, _, name = test.partition("::")
    if not name:
        return (root / file).is_file()
    function = name.partition("[")[0]
    try:
        tree = ast.parse((root / file).read_text())
    except OSError:
        return False
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(node.name == function for node in functions)
