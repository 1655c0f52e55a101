"""The command line. Each command imports what it needs when it runs: `antiphon --help` starts no server."""

import typer

from antiphon import __version__
from antiphon.cli.align import align
from antiphon.cli.bench import bench
from antiphon.cli.config import app as config_app
from antiphon.cli.diarize import diarize
from antiphon.cli.doctor import doctor
from antiphon.cli.models import app as models_app
from antiphon.cli.replay import replay
from antiphon.cli.say import say
from antiphon.cli.scale import scale
from antiphon.cli.serve import serve
from antiphon.cli.status import status
from antiphon.cli.terminal import echo
from antiphon.cli.transcribe import transcribe
from antiphon.cli.vad import vad
from antiphon.cli.validate import validate

app = typer.Typer(help="antiphon: a self-hosted speech server.", no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(serve)
app.command()(scale)
app.command()(status)
app.command()(doctor)
app.command()(bench)
app.command()(say)
app.command()(transcribe)
app.command()(diarize)
app.command()(align)
app.command()(vad)
app.command()(validate)
app.command()(replay)
app.add_typer(models_app, name="models")
app.add_typer(config_app, name="config")


@app.callback(invoke_without_command=True)
def _root(
    *, version: bool = typer.Option(False, "--version", help="Show the version and leave.", is_eager=True)
) -> None:
    if version:
        echo(f"antiphon {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the `antiphon` command."""
    app()
