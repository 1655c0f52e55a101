"""`antiphon validate`: shows what `antiphon.validation` finds, and writes its evidence."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.ending import ended_in_order
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo
from antiphon.vocabulary.spec import MAX_SLOTS
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode

if TYPE_CHECKING:
    from antiphon.validation.evidence import Evidence
    from antiphon.validation.run import Progress

_FAILED = 1
_UNVERIFIED = 3
_THROUGHPUT_ROUNDS = 5


def validate(
    model: Annotated[str, typer.Argument(help="An installed model's id, or one of the configuration.")],
    *,
    slots: Annotated[int, typer.Option(min=1, max=MAX_SLOTS, help="Validate every count from 1 to this one.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The evidence file; MODEL.json by default.")
    ] = None,
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Also measure each validated count, and say which to use.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="A configuration file that has the model.")] = None,
    family: Annotated[list[str] | None, typer.Option(metavar="MODULE:CLASS", help="One more model family.")] = None,
    mode: Annotated[list[Mode] | None, typer.Option(help="Only this mode; may be repeated.")] = None,
    threads: Annotated[str, typer.Option(help="Threads of one call at every count: a number, or auto.")] = "1",
    isolation: Annotated[Isolation, typer.Option(help="Where the engine runs.")] = Isolation.PROCESS,
    text: Annotated[list[str] | None, typer.Option(help="A text to speak instead of ours; repeat it.")] = None,
    audio: Annotated[
        list[Path] | None,
        typer.Option(
            help="A recording to hear instead of ours; repeat it. The words of a.wav are looked for in a.txt."
        ),
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Fresh starts a count; a listing needs 3.")] = 3,
    waves: Annotated[int | None, typer.Option(min=1, help="Warm waves a start; by default 5, 10 at the last.")] = None,
    models_root: Annotated[Path | None, typer.Option("--models-root", help="Where models live.")] = None,
) -> None:
    """Compare a model's answers at several slots with those of one slot, byte for byte, and write the evidence.

    Exit code 1: a check failed. 3: none failed, and something could not be verified.
    """
    from antiphon.packages import default_models_root
    from antiphon.validation.evidence import Verdict, write_evidence
    from antiphon.validation.facts import surroundings_of
    from antiphon.validation.inputs import inputs_for
    from antiphon.validation.plan import Plan
    from antiphon.validation.report import listing
    from antiphon.validation.run import run_validation
    from antiphon.validation.subjects import find_material, find_subject

    with one_line_errors(), ended_in_order():
        root, families = models_root or default_models_root(), family or []
        subject, capability = find_subject(
            model, config=config, models_root=root, families=families, threads=threads, isolation=isolation
        )
        plan = Plan(tuple(range(1, slots + 1)), tuple(mode or sorted(capability.modes)), starts)
        if waves is not None:
            plan = replace(plan, warm_waves=waves, warm_waves_at_most_slots=waves)
        if recommend:
            plan = replace(plan, throughput_rounds=_THROUGHPUT_ROUNDS)
        material = find_material(subject, text or [], audio or [], root)
        inputs = inputs_for(subject.spec.task, capability, material)
        surroundings = surroundings_of(subject.spec, families)
        with _progress_display() as show:
            evidence = run_validation(subject, inputs, plan, surroundings, show)
        file = output or Path(f"{model.replace('/', '-')}.json")
        write_evidence(evidence, file)
    _show(evidence)
    echo(f"evidence: {file}")
    match evidence.verdict():
        case Verdict.FAILED:
            raise typer.Exit(_FAILED)
        case Verdict.UNVERIFIED:
            raise typer.Exit(_UNVERIFIED)
        case Verdict.PASSED:
            if all(evidence.validated_slots(run.mode) == slots for run in evidence.modes):  # in enough starts
                echo(f"for the audit list: {listing(file)}")


def _show(evidence: "Evidence") -> None:
    from antiphon.validation.report import closing_lines, plain, reasons, tables

    if not sys.stdout.isatty():
        for line in plain(evidence):
            echo(line)
        return
    from rich.console import Console

    console = Console()
    for table in tables(evidence):
        console.print(table)
    for line in (*(reason for run in evidence.modes for reason in reasons(run)), *closing_lines(evidence)):
        console.print(line, highlight=False, markup=False)


@contextmanager
def _progress_display() -> Iterator[Callable[["Progress"], None]]:
    """A bar on a terminal, else a line for each start."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda progress: echo(f"{progress.done} of {progress.total}: {progress.what}", err=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console) as bars:
        task = bars.add_task("starting", total=None)
        yield lambda progress: bars.update(
            task, description=progress.what, completed=progress.done, total=progress.total
        )
