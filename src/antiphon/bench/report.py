"""A run as a reader sees it: plain lines, tables for a terminal, or JSON. It computes nothing but medians."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from antiphon.bench.comparisons import Finding, Sense
from antiphon.bench.run import CaseReport, Report
from antiphon.bench.samples import Basis, Sample, Spread

if TYPE_CHECKING:
    from rich.table import Table

SIDE_COLUMNS = ("side", "requests/s, wall", "CPU ms a request")
RATIO_COLUMNS = ("ratio", "wall clock", "CPU seconds", "target")


def facts_line(report: Report) -> str:
    """The machine and the versions, in one line."""
    facts = "; ".join(f"{name} {value}" for name, value in report.facts.items())
    return f"{facts}. Medians of {report.pairs} rounds, extremes in brackets."


def plain(report: Report) -> Iterator[str]:
    """The whole report as lines of text."""
    yield facts_line(report)
    for case in report.cases:
        yield ""
        yield case.name if case.skipped is None else f"{case.name}: skipped, {case.skipped}"
        if case.skipped is None:
            yield from _aligned([SIDE_COLUMNS, *side_rows(case)])
            yield from _aligned([RATIO_COLUMNS, *ratio_rows(case)])


def tables(case: CaseReport) -> "tuple[Table, Table]":
    """The two tables of a case that was measured."""
    from rich.table import Table

    made = []
    for columns, rows in ((SIDE_COLUMNS, side_rows(case)), (RATIO_COLUMNS, ratio_rows(case))):
        table = Table(title=case.name, title_justify="left")
        for column in columns:
            table.add_column(column, justify="left" if column == columns[0] else "right")
        for row in rows:
            table.add_row(*row)
        made.append(table)
    return made[0], made[1]


def as_json(report: Report) -> dict[str, object]:
    """Everything, the single turns included."""
    return {
        "facts": dict(report.facts),
        "pairs": report.pairs,
        "cases": [
            {
                "name": case.name,
                "skipped": case.skipped,
                "sides": {name: [asdict(sample) for sample in samples] for name, samples in case.samples.items()},
                "ratios": [_finding_json(finding) for finding in case.findings],
            }
            for case in report.cases
        ],
    }


def side_rows(case: CaseReport) -> list[tuple[str, str, str]]:
    """What each side did."""
    return [(name, _rate(samples), _cost(samples)) for name, samples in case.samples.items()]


def ratio_rows(case: CaseReport) -> list[tuple[str, str, str, str]]:
    """What each question's answer is; the ratio that a target does not speak of has none beside it."""
    return [(it.comparison.title, _spread(it.wall), _spread(it.cpu), _target(it)) for it in case.findings]


def _rate(samples: Sequence[Sample]) -> str:
    return _spread(Spread.of([1 / it.per_request_s(Basis.WALL) for it in samples]))


def _cost(samples: Sequence[Sample]) -> str:
    return _spread(Spread.of([it.per_request_s(Basis.CPU) * 1000 for it in samples]))


def _spread(spread: Spread) -> str:
    return f"{_number(spread.median)} [{_number(spread.low)}..{_number(spread.high)}]"


def _number(value: float) -> str:
    """Three significant digits or whole numbers, without exponents."""
    if value >= 100:
        return f"{value:,.0f}"
    digits = 3 if value < 1 else 2 if value < 10 else 1
    return f"{value:.{digits}f}" if value >= 0.01 else f"{value:.5f}"


def _target(finding: Finding) -> str:
    comparison = finding.comparison
    if comparison.target is None:
        return ""
    sign = ">=" if comparison.sense is Sense.RATE else "<="
    clock = "wall" if comparison.basis is Basis.WALL else "CPU"
    return f"{clock} {sign} {comparison.target:g}, {'met' if finding.is_met else 'MISSED'}"


def _finding_json(finding: Finding) -> dict[str, object]:
    comparison = finding.comparison
    return {
        "title": comparison.title,
        "ours": comparison.ours,
        "reference": finding.reference,
        "of": comparison.sense.name.lower(),
        "basis": str(comparison.basis),
        "wall": asdict(finding.wall),
        "cpu": asdict(finding.cpu),
        "target": comparison.target,
        "met": finding.is_met,
    }


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()
