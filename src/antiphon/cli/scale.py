"""`antiphon scale`: one server over several replicas, which Ray Serve puts on the nodes of a cluster."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.environment import ADMIN_KEYS_VARIABLE, SERVER_KEYS_VARIABLE, take_keys
from antiphon.cli.faults import one_line_errors
from antiphon.cli.serve import log_to_stderr
from antiphon.cli.terminal import echo


def scale(
    *,
    config: Annotated[
        Path | None, typer.Option(help="A .json or .toml file, as of serve; without one, every installed model.")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, max=1000, help="How many whole servers there are to be.")] = 2,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A cluster that runs (HOST:PORT, or auto); without, one of this machine."),
    ] = None,
    per_node: Annotated[int | None, typer.Option(min=1, help="The most replicas of one node.")] = None,
    cpus: Annotated[float, typer.Option(min=0, help="CPUs that Ray counts for each replica.")] = 1.0,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that Ray gives each replica.")] = 0.0,
    parallel_jobs: Annotated[
        bool, typer.Option("--parallel-jobs", help="Several slots a model (experimental).")
    ] = False,
    family: Annotated[list[str] | None, typer.Option(metavar="MODULE:CLASS", help="One more model family.")] = None,
    host: Annotated[str | None, typer.Option(help="Where the front listens: 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option(help="8080 by default.")] = None,
    ui_management: Annotated[bool | None, typer.Option(help="Allow clients to manage.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Listen beyond this machine without a key.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="pretty, or json: one object a line.")] = "pretty",
) -> None:
    """Serve over several replicas until Ctrl-C, SIGTERM or SIGHUP; needs antiphon[ray]."""
    from secrets import token_hex

    import uvloop

    from antiphon.cli.serving import damaged_of, settings_of
    from antiphon.runtime.parallel import STARTUP_NOTICE
    from antiphon.runtime.signals import StopSignals
    from antiphon.scaling.deployment import Wanted, require_extra, running_fleet
    from antiphon.scaling.replica import Plan

    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "ui_management": ui_management,
        "insecure": insecure,
        "api_keys": take_keys(SERVER_KEYS_VARIABLE),
        "admin_keys": take_keys(ADMIN_KEYS_VARIABLE),
    }
    log_to_stderr(log_level, log_format)
    with one_line_errors():
        require_extra()
        from antiphon.scaling.serving import serve_front

        settings = settings_of(config, None, flags, parallel_jobs=parallel_jobs)
        plan = Plan(
            settings,
            family or (),
            parallel_jobs,
            token_hex(32),
            log_level.upper(),
            log_format,
            damaged_of(config, None),
        )
        wanted = Wanted(replicas, cpus, gpus, per_node, ray_address)
        if parallel_jobs:
            echo(STARTUP_NOTICE, err=True)  # rule.startup_notice
        with (
            running_fleet(plan, wanted) as fleet,
            StopSignals() as signals,
            asyncio.Runner(loop_factory=uvloop.Loop) as runner,
        ):
            runner.run(serve_front(settings, fleet, _announce, signals))


def _announce(url: str) -> None:
    echo(f"antiphon is listening on {url}", err=True)
