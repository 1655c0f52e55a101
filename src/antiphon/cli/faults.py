"""How a command fails: one line on stderr and exit code 1, without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from antiphon.cli.terminal import echo
from antiphon.vocabulary.errors import AntiphonError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a domain error into one line and the exit code 1."""
    try:
        yield
    except AntiphonError as error:
        echo(f"antiphon: {error.message}", err=True)
        raise typer.Exit(1) from error
