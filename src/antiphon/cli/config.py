"""`antiphon config`: what the configuration may hold, for editors and for other programs."""

import json

import typer

from antiphon.cli.terminal import echo

app = typer.Typer(help="The configuration.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `schema` a command of its own while it is the only one."""


@app.command()
def schema() -> None:
    """Print the JSON schema of the configuration file."""
    from antiphon.config.json_schema import config_schema

    echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))
