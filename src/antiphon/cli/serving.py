"""A server as it was asked for on the command line: put together, announced, and run to its end. It knows no flag."""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from antiphon.bootstrap import Assembly, assemble, installed_config, serve
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo
from antiphon.config import ServerConfig, load_config
from antiphon.config.wording import shown_path
from antiphon.packages import damaged_packages, default_models_root
from antiphon.runtime.descriptors import raise_descriptor_limit
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.parallel import STARTUP_NOTICE
from antiphon.runtime.signals import StopSignals
from antiphon.vocabulary.spec import DamagedModel


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be served. Without a file it is all models of the models root; `fields` win over those of the file.

    Units: `logged_body_bytes` of each body go into the log.
    """

    config: Path | None
    models_root: Path | None
    fields: dict[str, object]
    families: tuple[str, ...]
    parallel_jobs: bool
    logged_body_bytes: int


def run(order: Order) -> None:
    """Serve until a signal says stop; exits with one line where it cannot."""
    with StopSignals() as signals, one_line_errors():
        raise_descriptor_limit()  # first: how many uploads may be in files at once depends on it
        assembly = _assembled(order)
        if order.parallel_jobs:
            echo(STARTUP_NOTICE, err=True)  # rule.startup_notice
        with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
            runner.run(serve(assembly, _announcer(assembly), signals))


def settings_of(
    config: Path | None, models_root: Path | None, fields: dict[str, object], *, parallel_jobs: bool
) -> ServerConfig:
    """The configuration of a file, or of all models of the models root without one; `fields` win over the file's."""
    if config is None:
        return installed_config(models_root, fields, parallel_jobs=parallel_jobs)
    return load_config(config, parallel_jobs=parallel_jobs, overrides=fields)


def damaged_of(config: Path | None, models_root: Path | None) -> Sequence[DamagedModel] | None:
    """The installed packages to leave out and report; None with a file, in which a fault is an error."""
    return None if config is not None else damaged_packages(models_root or default_models_root())


def _assembled(order: Order) -> Assembly:
    return assemble(
        settings_of(order.config, order.models_root, order.fields, parallel_jobs=order.parallel_jobs),
        AdapterFinder(order.families),
        parallel_jobs=order.parallel_jobs,
        source="the installed models" if order.config is None else shown_path(order.config),
        logged_body_bytes=order.logged_body_bytes,
        damaged=damaged_of(order.config, order.models_root),
    )


def _announcer(assembly: Assembly) -> Callable[[str], None]:
    def announce(url: str) -> None:
        echo(f"antiphon is listening on {url}", err=True)
        echo("open it in a browser, or call it", err=True)
        if example := _curl_line(assembly, url):
            echo(f"try:  {example}", err=True)

    return announce


def _curl_line(assembly: Assembly, url: str) -> str | None:
    """A command that speaks, for a server that has a voice; a key is never shown."""
    key = " -H 'authorization: Bearer YOUR_KEY'" if assembly.config.api_keys else ""
    for view in assembly.runtime.views():
        spec = view.registration.spec
        if spec.task == "tts":
            body = f'{{"model": "{spec.id}", "input": "Hello from antiphon."}}'
            return f"curl {url}/v1/audio/speech{key} -d {shlex.quote(body)} -o hello.wav"
    return None
