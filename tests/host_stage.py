"""A host of either isolation over one controlled checkpoint, freed at the test's end."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

from antiphon.ports.host import SlotHost
from antiphon.runtime.hosts.process import ProcessHost
from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.vocabulary.spec import ModelSpec, SessionFacts
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Task, TaskRequest

CONTROLLED = "antiphon.testing.controlled:ControlledAdapter"


def make_host(isolation: Isolation, spec: ModelSpec, on_death: Callable[[], None]) -> SlotHost:
    """A host for the controlled engine."""
    if isolation is Isolation.THREAD:
        return ThreadHost(ControlledAdapter(), spec)
    return ProcessHost(CONTROLLED, spec, on_death)


def descriptors() -> set[str]:
    """The open descriptors of this process; what nobody refers to is closed first."""
    gc.collect()
    return {path.name for path in Path("/proc/self/fd").iterdir()}


class Opened:
    """A host with its weights and some sessions."""

    def __init__(self, checkpoint: ControlledCheckpoint, isolation: Isolation, task: Task = Task.TTS) -> None:
        self.checkpoint = checkpoint
        self.deaths = 0
        self.host = make_host(isolation, checkpoint.spec(task), self._died)
        self.hung = False

    async def slots(self, count: int = 1) -> list[SessionFacts | None]:
        """Load, and open this many sessions."""
        await self.host.load()
        facts = [await self.host.open()]
        facts += [await self.host.clone(slot) for slot in range(1, count)]
        return facts

    def say(self, text: str, slot: int = 0) -> "asyncio.Task[str | None]":
        """Begin a run; its task gives the engine's words."""
        return asyncio.ensure_future(self._words(text, slot))

    async def at_end(self) -> None:
        """Take back the holds and free all."""
        for pattern in ("*.hold*", "*.fail"):
            for path in self.checkpoint.path.glob(pattern):
                path.unlink()
        if self.hung:
            self.host.kill()
        else:
            await self.host.close()
        await self.host.terminate()

    def _died(self) -> None:
        self.deaths += 1

    async def _words(self, text: str, slot: int) -> str | None:
        return (await self.host.run(slot, TaskRequest(text=text))).text
