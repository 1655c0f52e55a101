"""A whole run: the chosen cases one after another, each with its sides interleaved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.bench.cases import CASES
from antiphon.bench.comparisons import Finding, answer, take_turns
from antiphon.bench.errors import NotInstalledError
from antiphon.bench.lab import Lab, Scale
from antiphon.bench.machine import machine_facts
from antiphon.bench.samples import Sample


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One case: every turn of every side, and the answers; `skipped` says why there are none."""

    name: str
    samples: Mapping[str, Sequence[Sample]]
    findings: tuple[Finding, ...]
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run. `pairs` is the number of rounds, each of which gives one ratio a comparison."""

    facts: Mapping[str, str]
    pairs: int
    cases: tuple[CaseReport, ...]


def run_bench(
    names: Sequence[str], pairs: int, scale: Scale, models_root: Path, on_progress: Callable[[str], None]
) -> Report:
    """Run these cases. `on_progress` is told, in a few words, what begins. Raises BenchError."""
    facts = machine_facts()
    reports = []
    for name in names:
        on_progress(f"{name}: starting")
        try:
            reports.append(_run_case(name, pairs, Lab(models_root, scale), on_progress))
        except NotInstalledError as missing:
            reports.append(CaseReport(name, {}, (), missing.message))
    return Report(facts, pairs, tuple(reports))


def _run_case(name: str, pairs: int, lab: Lab, on_progress: Callable[[str], None]) -> CaseReport:
    with lab:
        case = CASES[name](lab)
        samples = take_turns(case, pairs, lambda number: on_progress(f"{name}: round {number} of {pairs}"))
    return CaseReport(name, samples, tuple(answer(question, samples) for question in case.comparisons))
