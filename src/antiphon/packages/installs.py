"""The installs that a server was asked for: one at a time, the others wait in a bounded queue; it knows no model."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.packages.catalogue import Package
from antiphon.packages.installer import Phase, Progress
from antiphon.packages.process import PackageProcess, Verb
from antiphon.vocabulary.errors import PackageError, ServerBusy, ShuttingDown

MAX_INSTALLS = 32
"""How many may be queued or run; one more is refused."""

RETRY_AFTER_S = 60.0
"""When to come back to a full queue: an install is a matter of minutes."""


@dataclass(frozen=True, slots=True)
class InstallView:
    """How far an install is: its phase, None while it is queued, and the part of all its bytes, from 0 to 1."""

    phase: Phase | None
    progress: float


@dataclass(slots=True)
class _Order:
    package: Package
    models_root: Path
    process: PackageProcess
    phase: Phase | None = None
    progress: float = 0.0
    stopped: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, told: Progress) -> None:
        """Take note; what is downloaded and what is unpacked count alike, and it never goes back."""
        total_bytes = self.package.download_bytes + self.package.size_bytes
        match told.phase:
            case Phase.DOWNLOADING:
                done_bytes = told.done_bytes
            case Phase.EXTRACTING:
                done_bytes = self.package.download_bytes + told.done_bytes
            case Phase.PUBLISHING | Phase.DONE:
                done_bytes = total_bytes
            case _:
                done_bytes = 0
        self.phase = told.phase
        self.progress = max(self.progress, min(1.0, done_bytes / max(1, total_bytes)))


class Installs:
    """Runs them in the order in which they were asked for, each in a process of its own; all of it is for the loop."""

    def __init__(self) -> None:
        self._orders: dict[str, _Order] = {}  # the first one runs
        self._errors: dict[str, str] = {}
        self._working: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def errors(self) -> Mapping[str, str]:
        """What the last install of a package ended in, by the package's id; stopped ones have none."""
        return self._errors

    @property
    def under_way(self) -> Mapping[str, InstallView]:
        """Those that run or are queued, by the package's id, in order."""
        return {id_: InstallView(order.phase, order.progress) for id_, order in self._orders.items()}

    def require_room(self, package_id: str) -> None:
        """Raise what `begin` would: ServerBusy for a full queue, ShuttingDown."""
        if self._closing:
            raise ShuttingDown
        if package_id not in self._orders and len(self._orders) >= MAX_INSTALLS:
            raise ServerBusy(f"{len(self._orders)} installs are queued already", retry_after_s=RETRY_AFTER_S)

    def begin(self, package: Package, models_root: Path) -> None:
        """Queue an install; one of the same package that is queued or runs is left alone."""
        self.require_room(package.id)
        if package.id in self._orders:
            return
        self.forget(package.id)
        process = PackageProcess(Verb.INSTALL, models_root, package.id)
        self._orders[package.id] = _Order(package, models_root, process)
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work())

    async def stop(self, package_id: str) -> None:
        """End an install now and wait until nothing of it is left; harmless where there is none."""
        self.forget(package_id)
        order = self._orders.get(package_id)
        if order is not None:
            self._stop(order)
            await order.ended.wait()

    def forget(self, package_id: str | None = None) -> None:
        """Drop what the last install of a package ended in, or of every one."""
        for id_ in tuple(self._errors) if package_id is None else (package_id,):
            self._errors.pop(id_, None)

    async def close(self) -> None:
        """Take no more, end all, and wait for that. What the one that ran has left, the next install sweeps away."""
        self._closing = True
        for order in tuple(self._orders.values()):
            self._stop(order)
        if self._working is not None:
            await self._working

    def _stop(self, order: _Order) -> None:
        order.stopped = True
        if order is next(iter(self._orders.values())):
            order.process.kill()
        else:
            self._end(order)

    def _end(self, order: _Order) -> None:
        del self._orders[order.package.id]
        order.ended.set()

    async def _work(self) -> None:
        while self._orders:
            order = next(iter(self._orders.values()))
            try:
                if not order.stopped:
                    await self._install(order)
            finally:
                self._end(order)
        self._working = None

    async def _install(self, order: _Order) -> None:
        try:
            order.phase = Phase.CHECKING
            await order.process.run(order.hear)
        except PackageError as fault:
            if not order.stopped:
                self._errors[order.package.id] = fault.message
            elif not self._closing:
                await self._sweep(order)

    async def _sweep(self, order: _Order) -> None:
        try:
            await PackageProcess(Verb.SWEEP, order.models_root, order.package.id).run()
        except PackageError as fault:
            self._errors[order.package.id] = fault.message
