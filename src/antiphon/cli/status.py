"""`antiphon status`: shows what a running server says of its models, once or again and again."""

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.environment import KEY_VARIABLE, SERVER_KEYS_VARIABLE, own_key
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo
from antiphon.vocabulary.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from antiphon.status.source import Answers, StatusSource
    from antiphon.status.watch import Look

_WIDE = 10_000
"""No table is as wide. What is read by programs is not folded. Units: columns."""


def status(
    *,
    url: Annotated[
        str, typer.Option(envvar="ANTIPHON_URL", help="Where the server listens.")
    ] = "http://127.0.0.1:8080",
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help=f"Better is the environment: {KEY_VARIABLE}, or the first of {SERVER_KEYS_VARIABLE}."
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="The server's own words, one line a look.")] = False,
) -> None:
    """Show every model of a running server: its state, slots, queue, memory and last error."""
    from antiphon.status.source import StatusSource
    from antiphon.status.watch import looks

    with one_line_errors():
        source = StatusSource(url, api_key or own_key())
        if not watch:
            _print(source.ask(), source, as_json=as_json)
            return
        try:
            seen = looks(source, lambda: time.sleep(interval))
            if sys.stdout.isatty() and not as_json:
                _show_live(seen, source)
            else:
                _print_each(seen, source, as_json=as_json)
        except KeyboardInterrupt:
            return


def _show_live(seen: "Iterator[Look]", source: "StatusSource") -> None:
    """One table that changes in its place; the last one stays when it ends."""
    from rich.live import Live

    with Live(console=_console(), auto_refresh=False) as live:
        for look in seen:
            live.update(_look(look, source), refresh=True)


def _print_each(seen: "Iterator[Look]", source: "StatusSource", *, as_json: bool) -> None:
    """A table, or a line, a look; that the connection was lost is said once, on stderr."""
    was_lost = False
    for look in seen:
        if look.lost is None and look.answers is not None:
            _print(look.answers, source, as_json=as_json)
        elif not was_lost:
            echo(f"antiphon: {_trying_again(look.lost)}", err=True)
        was_lost = look.lost is not None


def _print(answers: "Answers", source: "StatusSource", *, as_json: bool) -> None:
    from antiphon.status.board import board

    if as_json:
        echo(json.dumps(json.loads(answers.status), ensure_ascii=False))
    else:
        _console().print(board(answers.snapshot, source.url))
    sys.stdout.flush()


def _look(look: "Look", source: "StatusSource") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from antiphon.status.board import board

    parts: list[RenderableType] = []
    if look.answers is not None:
        parts.append(board(look.answers.snapshot, source.url))
    if look.lost is not None:
        parts.append(Text(printable(_trying_again(look.lost)), style="bold red"))
    return Group(*parts)


def _trying_again(lost: str | None) -> str:
    return f"{lost}; trying again"


def _console() -> "Console":
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)
