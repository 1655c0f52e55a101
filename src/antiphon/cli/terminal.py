"""Prints for all commands, so that nothing that came from a server, a model or a file steers the user's terminal."""

import sys

import typer

from antiphon.vocabulary.printable import printable, without_controls


def echo(text: str, *, err: bool = False) -> None:
    """Print lines to stdout, or to stderr, with escapes for whatever is not printable: JSON stays the same JSON."""
    typer.echo("\n".join(map(printable, text.split("\n"))), err=err)


def write_text(text: str) -> None:
    """Write a text to stdout: byte for byte to a file or a pipe, without control characters to a terminal."""
    sys.stdout.write(without_controls(text) if sys.stdout.isatty() else text)
