"""Every operation, disturbed at every place: afterwards the invariants hold, nothing leaks, the next request works."""

import ast
import logging
from pathlib import Path

import pytest

from sim_operations import LEAST, OPERATIONS
from sim_sweep import RUNTIME, Operation, swept

WAYS = ("leaves", "fails", "raises")
_SWEPT_MODULES = ("leases", "models", "owned", "pool", "registration", "residents", "room", "streams")


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def waited() -> set[tuple[str, int]]:
    """Where the runtime waited when a caller left."""
    return set()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: it.name)
@pytest.mark.parametrize("way", WAYS)
def test_an_operation_survives_a_disturbance_at_every_place(operation: Operation, way: str, waited):
    places, findings, where = swept(operation, way)
    print(f"{operation.name}: {way} at {places} places")
    assert findings == []
    assert places >= LEAST[operation.name][WAYS.index(way)], "places that were disturbed once are no longer reached"
    waited |= where


def test_a_caller_has_left_at_every_await_of_the_runtime(waited):
    if not waited:
        pytest.fail("this test looks at what those before it have reached: run the whole file")
    missed = []
    for module in _SWEPT_MODULES:
        path = Path(RUNTIME) / f"{module}.py"
        reached = {line for name, line in waited if name == path.name}
        for function, first, last in awaits(path):
            if not any(first <= line <= last for line in reached) and (module, function) not in NEVER_SUSPENDED:
                missed.append(f"{path.name}:{first} in {function}")
    assert missed == []


def test_the_sweep_can_fail(monkeypatch):
    """A runtime that keeps a lease when its request fails is found out."""
    from antiphon.runtime.leases import LeaseDesk

    release = LeaseDesk.release
    monkeypatch.setattr(LeaseDesk, "release", lambda desk, lease: None if desk._pending else release(desk, lease))
    operation = next(it for it in OPERATIONS if it.name == "unload behind a request")
    _, findings, _ = swept(operation, "leaves")
    assert findings


NEVER_SUSPENDED = {
    ("leases", "granted"): "asyncio cannot show what waits below a claim; those who await claims are shown",
}
"""Awaits at which nobody can be found waiting, and why."""


def awaits(path: Path) -> list[tuple[str, int, int]]:
    """Every await of a module: its function, and its first and last line."""
    found = []
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.AsyncFunctionDef):
            found += [
                (
                    function.name,
                    it.lineno,
                    it.items[0].context_expr.end_lineno if isinstance(it, ast.AsyncWith) else it.end_lineno,
                )
                for it in _own(function)
                if isinstance(it, ast.Await | ast.AsyncFor | ast.AsyncWith)
            ]
    return found


def _own(function: ast.AsyncFunctionDef):
    """What is in a function, without the functions in it."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        todo += [it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
