"""A server that the audit list does not bind, on the CPU: what is to be audited must run before it is listed.

It runs as a process of its own, `python -m antiphon.validation.server --config FILE [--family MODULE:CLASS]`, and is
`antiphon serve --parallel-jobs` in all else. No flag of the product leads here.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import uvloop

from antiphon.bench.processes import Measured, wait_for_url
from antiphon.bootstrap import assemble, serve
from antiphon.config import load_config
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.signals import StopSignals
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import MAX_SLOTS, ModelSpec


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that listens, and its process."""

    url: str
    pid: int


Opener: TypeAlias = Callable[[Path, Sequence[str]], AbstractContextManager[Opened]]
"""Starts a server with a configuration file and further families, and ends it."""


@contextmanager
def open_process(config: Path, families: Sequence[str]) -> Iterator[Opened]:
    """Run such a server in a new process, for the length of the block; raises BenchError if it does not start."""
    flags = [word for family in families for word in ("--family", family)]
    with Measured(["-m", "antiphon.validation.server", "--config", str(config), *flags]) as process:
        yield Opened(wait_for_url(process), process.pid)


def unlisted_slots(spec: ModelSpec) -> int:
    """How many slots may be tried: all that there are on the CPU, and one elsewhere."""
    return MAX_SLOTS if spec.device == "cpu" else 1


def serve_unlisted(config: Path, families: Sequence[str], on_listening: Callable[[str], None]) -> None:
    """Serve until a stop signal; raises ConfigError. To be called in the main thread."""
    with StopSignals() as signals, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        settings = load_config(config, parallel_jobs=True)
        assembly = assemble(settings, AdapterFinder(families), parallel_jobs=True, max_slots_of=unlisted_slots)
        runner.run(serve(assembly, on_listening, signals))


def main() -> None:
    """Be such a server, as the command line says; exits with one line where it cannot."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--family", action="append", default=[])
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    try:
        serve_unlisted(given.config, given.family, _announce)
    except AntiphonError as error:
        sys.exit(f"antiphon: {error.message}")


def _announce(url: str) -> None:
    sys.stderr.write(f"the unlisted server is listening on {url}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
