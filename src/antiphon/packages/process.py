"""One change to a models root, in a process that may be killed at any moment: the Installer sees to that."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from antiphon.packages.installer import Phase, Progress
from antiphon.vocabulary.errors import PackageError

WORKER = "antiphon.worker.package"
"""The module that the process runs; the server never imports it."""


class Verb(StrEnum):
    """What is to be done about a package."""

    INSTALL = "install"
    REMOVE = "remove"
    SWEEP = "sweep"


def _ignore(progress: Progress) -> None:
    """The default listener."""


class PackageProcess:
    """One process for one change. Run it once, on the main thread's loop: the kernel ends it with the thread's."""

    def __init__(self, verb: Verb, models_root: Path, package_id: str) -> None:
        self._verb = verb
        self._models_root = models_root
        self._package_id = package_id
        self._process: asyncio.subprocess.Process | None = None
        self._killed = False

    async def run(self, on_progress: Callable[[Progress], None] = _ignore) -> None:
        """Carry the change out. Raises PackageError for what went wrong, and where it was killed."""
        try:
            process = self._process = await self._start()
        except OSError as error:
            raise PackageError(f"cannot {self._verb} {self._package_id}: {error.strerror}") from error
        try:
            if self._killed:
                self.kill()
            error_told = await self._listen(process, on_progress)
        except ValueError as error:
            raise PackageError(f"the process that should {self._verb} {self._package_id} made no sense") from error
        finally:
            self.kill()
            code = await process.wait()
        if error_told is not None:
            raise PackageError(error_told)
        if code != 0:
            raise PackageError(f"the process that should {self._verb} {self._package_id} ended before it was done")

    def kill(self) -> None:
        """End it now, also if it only starts now, and what it has started."""
        self._killed = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it leads a group of its own

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the working folder is no place to import from
            "-m",
            WORKER,
            str(os.getpid()),
            self._verb,
            str(self._models_root),
            self._package_id,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    async def _listen(self, process: asyncio.subprocess.Process, on_progress: Callable[[Progress], None]) -> str | None:
        error: str | None = None
        assert process.stdout is not None
        async for line in process.stdout:
            if not line.endswith(b"\n"):
                continue  # it was killed in the middle of a word
            match json.loads(line):
                case {"error": str(error)}:
                    pass
                case {"phase": phase, "done_bytes": done_bytes, "total_bytes": total_bytes}:
                    on_progress(Progress(self._package_id, Phase(phase), done_bytes, total_bytes))
        return error
