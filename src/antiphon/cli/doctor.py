"""`antiphon doctor`: shows what `antiphon.doctor` finds."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.ending import ended_in_order
from antiphon.cli.environment import admin_keys, server_keys
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo

if TYPE_CHECKING:
    from antiphon.doctor.diagnosis import Diagnosis


def doctor(
    *,
    config: Annotated[
        Path | None, typer.Option(help="The file that a server would be given; without one, every installed model.")
    ] = None,
    parallel_jobs: Annotated[bool, typer.Option("--parallel-jobs", help="As it would be served.")] = False,
    family: Annotated[list[str] | None, typer.Option(metavar="MODULE:CLASS", help="One more model family.")] = None,
    models_root: Annotated[Path | None, typer.Option("--models-root", help="Where models live.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for programs.")] = False,
) -> None:
    """Look at this installation as a server would meet it, and say what to do; exit code 1 if it would not serve."""
    from antiphon.doctor.diagnosis import Health, worst
    from antiphon.doctor.examination import Order, examine
    from antiphon.doctor.report import as_json as report

    found: list[Diagnosis] = []
    with one_line_errors(), ended_in_order():
        keys = server_keys(), admin_keys()
        for diagnosis in examine(Order(config, models_root, *keys, tuple(family or ()), parallel_jobs)):
            found.append(diagnosis)
            if not as_json:
                _show(diagnosis)
    if as_json:
        echo(json.dumps(report(found), ensure_ascii=False))
    else:
        _close(found)
    if worst(found) is Health.FAIL:
        raise typer.Exit(1)


def _show(diagnosis: "Diagnosis") -> None:
    from rich.console import Console

    from antiphon.doctor.report import lines

    console = Console(soft_wrap=True)
    for line in lines(diagnosis):
        console.print(line)
    sys.stdout.flush()


def _close(found: "list[Diagnosis]") -> None:
    from antiphon.doctor.report import closing_line

    echo(closing_line(found))
