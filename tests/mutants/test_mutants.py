"""The list of mutants is in order, and running one tells the truth. `make mutants` runs them all."""

from dataclasses import replace

import pytest

from conformance_cells import read_cells
from mutants.listing import ROOT, Mutant, faults_of, load_mutants
from mutants.run import Verdict, run_mutant

CELLS = ROOT / "tests" / "conformance" / "cells.toml"
SPARE = Mutant(
    name="a worker that cannot be imported",
    file="src/antiphon/worker/engine.py",
    old="class EngineWorker:",
    new="class EngineWorker(Missing):",
    kills=("tests/conformance/test_ops_unloaded.py::test_ops_unloaded_inference",),
    select="process and 1slots",
)
"""It is in a module that only worker processes import."""


def test_every_mutant_can_be_applied_and_every_cell_has_one():
    assert list(faults_of(load_mutants(), read_cells(CELLS))) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"old": "class Elsewhere:"}, "occurs 0 times"),
        ({"new": "class EngineWorker("}, "was never closed"),
        ({"file": "src/antiphon/nowhere.py"}, "No such file"),
        ({"kills": ("tests/conformance/test_ops_unloaded.py::test_nothing",)}, "there is no test"),
        ({"kills": ("tests/nowhere.py::test_nothing",)}, "there is no test"),
        ({"kills": ()}, "no test is to kill it"),
        ({"cells": ("nobody",)}, "there is no cell nobody"),
    ],
)
def test_a_mutant_that_cannot_be_run_is_a_fault(change, fault):
    assert list(faults_of([SPARE])) == []
    assert [it for it in faults_of([replace(SPARE, **change)], ["known"]) if fault in it]


def test_a_cell_without_a_mutant_is_a_fault():
    assert list(faults_of([replace(SPARE, cells=("one",))], ["one", "two"])) == ["no mutant is named for the cell two"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Verdict.KILLED),
        ({"select": "thread and 1slots"}, Verdict.SURVIVED),
        ({"new": "class EngineWorker:  # unchanged"}, Verdict.SURVIVED),
        ({"select": "nothing_is_called_so"}, Verdict.NOT_TRIED),
    ],
    ids=["in a worker process", "not in the server", "no change", "no test"],
)
def test_a_mutant_is_seen_by_the_processes_that_run_its_module(change, verdict):
    assert run_mutant(replace(SPARE, **change)).verdict is verdict
