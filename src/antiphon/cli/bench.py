"""`antiphon bench`: shows what `antiphon.bench` measures."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.ending import ended_in_order
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo


class CaseName(StrEnum):
    """The cases that there are."""

    NOOP = "noop"
    GATE = "gate"
    OBSERVATION = "observation"
    STARTUP = "startup"
    PIPER = "piper"
    WHISPER = "whisper"
    FIRST_AUDIO = "first-audio"
    ISOLATION = "isolation"
    ISOLATED_ENGINES = "isolated-engines"
    WORKER_START = "worker-start"
    THREADS_AUTO = "threads-auto"


def bench(
    *,
    only: Annotated[list[CaseName] | None, typer.Option(help="Run this case alone; may be repeated.")] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Rounds; each gives one ratio a comparison.")] = 7,
    quick: Annotated[bool, typer.Option("--quick", help="Short turns: shows that it works, proves nothing.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything to this file.")] = None,
    models_root: Annotated[Path | None, typer.Option(help="Where the models of piper and whisper are.")] = None,
) -> None:
    """Measure the server against what it could cost at best, on its own servers, and print the ratios."""
    from antiphon.bench.lab import FULL, QUICK
    from antiphon.bench.report import as_json, facts_line, plain, tables
    from antiphon.bench.run import run_bench
    from antiphon.packages import default_models_root

    with one_line_errors(), ended_in_order():
        report = run_bench(
            [str(name) for name in only or CaseName],
            pairs,
            QUICK if quick else FULL,
            models_root or default_models_root(),
            lambda what: echo(what, err=True),
        )
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(report), indent=1) + "\n", encoding="utf-8")
    if not sys.stdout.isatty():
        for line in plain(report):
            echo(line)
        return
    from rich.console import Console

    console = Console()
    console.print(facts_line(report), highlight=False)
    for case in report.cases:
        if case.skipped is not None:
            console.print(f"{case.name}: skipped, {case.skipped}", highlight=False)
            continue
        for table in tables(case):
            console.print(table)
