"""Every operation, disturbed at every place: afterwards the invariants hold, nothing leaks, the next request works."""

import ast
import logging
from pathlib import Path

import pytest

from sim_operations import OPERATIONS, PLACES
from sim_sweep import RUNTIME, Operation, swept

WAYS = ("leaves", "fails", "raises")
"""How places are noted; a host dies wherever a caller leaves."""
_KEPT = 0.8
"""The share of the places noted that must still be there: a call less is no lost coverage, a phase less is."""
_SWEPT_MODULES = (
    "evictions",
    "leases",
    "live",
    "models",
    "owned",
    "pool",
    "registration",
    "requests",
    "reservations",
    "residents",
    "room",
    "scales",
    "streams",
    "underway",
    "watch",
)


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
@pytest.mark.parametrize("way", [*WAYS, "dies"])
def test_an_operation_survives_a_disturbance_at_every_place(operation: Operation, way: str, waited):
    places, findings, where = swept(operation, way)
    print(f"{operation.name}: {way} at {places} places")
    assert findings == []
    noted = PLACES[operation.name][WAYS.index("leaves" if way == "dies" else way)]
    assert places >= _KEPT * noted, f"{noted} places were disturbed once, and many are no longer reached"
    waited |= where


def test_a_caller_has_left_at_every_await_of_the_runtime(waited):
    if not waited:
        pytest.fail("this test looks at what those before it have reached: run the whole file")
    missed = []
    for module in _SWEPT_MODULES:
        path = Path(RUNTIME) / f"{module}.py"
        reached = {line for name, line in waited if name == path.name}
        for function, awaited, first, last in awaits(path):
            known = {(module, function), (module, function, awaited)} & NEVER_SUSPENDED.keys()
            if not known and not any(first <= line <= last for line in reached):
                missed.append(f"{path.name}:{first} in {function}: {awaited}")
    assert missed == []


def test_the_sweep_can_fail(monkeypatch):
    """A runtime that keeps a lease when its request fails is found out."""
    from antiphon.runtime.leases import LeaseDesk

    release = LeaseDesk.release
    monkeypatch.setattr(LeaseDesk, "release", lambda desk, lease: None if desk._pending else release(desk, lease))
    operation = next(it for it in OPERATIONS if it.name == "unload behind a request")
    _, findings, _ = swept(operation, "leaves")
    assert findings


_AFTER_A_FAULT = "only after the core has raised: no sweep disturbs twice"
NEVER_SUSPENDED = {
    ("leases", "granted"): "asyncio cannot show what waits below a claim; those who await claims are shown",
    ("models", "_granted_by_force", "claim"): "it has been granted; one that waits is shown as the caller's own await",
    ("registration", "_inspected", "self._inspect"): "simulated models have no files; tests/runtime/test_inspection.py",
    ("requests", "_open_flow", "flow.aclose"): _AFTER_A_FAULT,
    ("requests", "_started", "flow.aclose"): "only where an engine gives way after its time, before it is killed",
    ("registration", "build_beside", "pool.abandon"): "only after its caller has been released, since it took too long",
    ("registration", "_retire_and_commit", "head_start.staged.abandon"): _AFTER_A_FAULT,
    ("residents", "_build", "staged.abandon"): "only where a replacement that is loaded is overtaken by a cut",
    ("residents", "_build", "pool.abandon"): _AFTER_A_FAULT,
    ("residents", "_load", "pool.abandon"): _AFTER_A_FAULT,
}
"""Awaits at which nobody can be found waiting, and why."""


def awaits(path: Path) -> list[tuple[str, str, int, int]]:
    """Every await of a module: its function, what it calls, and its first and last line."""
    found = []
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.AsyncFunctionDef):
            for node in _own(function):
                waits = node.value if isinstance(node, ast.Await) else None
                if isinstance(node, ast.AsyncWith):
                    waits = node.items[0].context_expr
                elif isinstance(node, ast.AsyncFor):
                    waits = node.iter
                if waits is not None:
                    called = ast.unparse(waits.func if isinstance(waits, ast.Call) else waits)
                    found.append((function.name, called, node.lineno, waits.end_lineno))
    return found


def _own(function: ast.AsyncFunctionDef):
    """What is in a function, without the functions in it."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        todo += [it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
