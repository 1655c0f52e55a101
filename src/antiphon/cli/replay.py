"""`antiphon replay`: a journal made to happen again, and compared."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo


def replay(journal: Annotated[Path, typer.Argument(help="A file that `antiphon serve --journal FILE` wrote.")]) -> None:
    """Make the calls of a journal again, in its own time: exit code 1 where anything is decided otherwise."""
    from antiphon.observability.journal.reading import replay_file

    with one_line_errors():
        verdict = replay_file(journal)
    if verdict.cut:
        echo("the last line is cut, and was left out", err=True)
    replayed = f"{verdict.entries} entries of {verdict.models} models, over {verdict.seconds:.3f} s"
    if verdict.fault is None:
        echo(f"{replayed}: all was decided as it was")
        return
    echo(f"{replayed}: then a difference")
    echo("\n".join((verdict.fault, *verdict.surroundings)))
    raise typer.Exit(1)
