"""A validation as people see it: plain lines, or tables for a terminal, and the line for the audit list."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.validation.evidence import MIN_STARTS, CheckName, Count, Evidence, ModeRun, Throughput, Verdict
from antiphon.validation.plan import slots_text
from antiphon.validation.throughput import WORTHWHILE, is_clear

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
                yield f"{run.mode}, {slots_text(count.slots)}, {check.name}: {check.verdict}{_reason(check.reason)}"
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
                yield f"{run.mode}, {slots_text(count.slots)}, {check.name}: {check.verdict}, {check.reason}"


def closing_lines(evidence: Evidence) -> Iterator[str]:
    """What was shown, and what to use."""
    for run in evidence.modes:
        if evidence.plan.starts < MIN_STARTS:
            yield f"{run.mode}: nothing is validated by {evidence.plan.starts} of the {MIN_STARTS} starts that it takes"
        else:
            yield f"{run.mode}: validated up to {slots_text(evidence.validated_slots(run.mode))}"
    if evidence.throughput is not None:
        yield from _throughput_lines(evidence.throughput)


def _throughput_lines(throughput: Throughput) -> Iterator[str]:
    for rate in throughput.rates:
        clients = "1 client" if rate.slots == 1 else f"{rate.slots} clients"
        rounds = f"rounds from {rate.low:.2f} to {rate.high:.2f}"
        yield f"{slots_text(rate.slots)}, {clients}: {rate.median:.2f} requests/s ({rounds})"
    use = slots_text(throughput.recommended_slots)
    yield f"recommended here: {use}, the fewest that no other number beats by {WORTHWHILE - 1:.0%}"
    if not is_clear(throughput):
        yield "the rounds differ too much to tell: measure again while the machine does nothing else"


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
