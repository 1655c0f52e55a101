"""A validation as people see it: plain lines, or tables for a terminal, and the line for the audit list."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.validation.evidence import CheckName, Count, Evidence, ModeRun, Verdict

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("slots", *(str(name) for name in CheckName), "peak memory")
_MIB = 1024 * 1024
_STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.UNVERIFIED: "yellow"}


def plain(evidence: Evidence) -> Iterator[str]:
    """Every verdict as a line."""
    for run in evidence.modes:
        for count in run.counts:
            for check in count.checks:
                yield f"{run.mode}, {count.slots} slots, {check.name}: {check.verdict}{_reason(check.reason)}"
    yield from closing_lines(evidence)


def tables(evidence: Evidence) -> "Iterator[Table]":
    """A table a mode."""
    from rich.table import Table

    for run in evidence.modes:
        table = Table(title=f"{evidence.model.id}, {run.mode}", title_justify="left")
        for column in COLUMNS:
            table.add_column(column.replace("_", " "), justify="right" if column == COLUMNS[0] else "left")
        for count in run.counts:
            table.add_row(*_row(count))
        yield table


def reasons(run: ModeRun) -> Iterator[str]:
    """Why something did not pass."""
    for count in run.counts:
        for check in count.checks:
            if check.reason is not None:
                yield f"{run.mode}, {count.slots} slots, {check.name}: {check.verdict}, {check.reason}"


def closing_lines(evidence: Evidence) -> Iterator[str]:
    """What was shown, and what to use."""
    for run in evidence.modes:
        yield f"{run.mode}: validated up to {evidence.validated_slots(run.mode)} slots"
    if evidence.throughput is not None:
        for rate in evidence.throughput.rates:
            yield f"{rate.slots} slots: {rate.median:.2f} requests/s [{rate.low:.2f}..{rate.high:.2f}]"
        yield f"recommended: {evidence.throughput.recommended_slots} slots"


def listing(path: Path) -> str:
    """The member of `evidence` in `audited_models.toml` that names a file which was written."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f'{{ file = "docs/evidence/{path.name}", sha256 = "{digest}" }}'


def _row(count: Count) -> list[str]:
    cells = [f"[{_STYLES[check.verdict]}]{check.verdict}[/]" for check in count.checks]
    peak_bytes = max(start.memory.peak_bytes for start in count.starts)
    return [str(count.slots), *cells, f"{peak_bytes // _MIB} MiB"]


def _reason(reason: str | None) -> str:
    return "" if reason is None else f", {reason}"
