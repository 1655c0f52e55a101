"""A process that works on files, one at a time: started when it is needed, timed, killed, replaced when it has ended.

It gets each file as a descriptor, and what it makes of it comes piece by piece. It knows no audio.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Generic, Self, TypeVar

from antiphon.ports.clock import Clock
from antiphon.runtime.codec_messages import Answer, answer_decoder
from antiphon.runtime.watch import Limit
from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.flow import RemoteFlow
from antiphon.runtime.wire.worker import WorkerProcess
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ServerBusy, ShuttingDown, WorkerDied
from antiphon.vocabulary.tasks import Cancellation

T = TypeVar("T")

WORKER = "antiphon.worker.codec_process"
"""The module that the process runs; the server never imports it."""

START_LIMIT_S = 60.0
"""A process that has not begun by then is not going to. A slow disk takes a few seconds to bring the libraries."""
STALL_LIMIT_S = 10.0
"""How long the next piece may take: several hundred times what the slowest needs."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileOrder(Generic[T]):
    """What a process is to do with a file, and how each of its answers is read.

    Units: `limit_s` for the whole of it. A cancellation ends it at its next piece.
    """

    order: Message
    piece_of: Callable[[Answer, Sequence[Pcm]], T]
    limit_s: float
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class _Started:
    worker: WorkerProcess[Answer]
    files: socket.socket


class FileWorker:
    """One process at most. Each piece of work belongs to a task that is never cancelled, and no two overlap.

    `work` is what the process does, in words: "decodes audio".
    """

    def __init__(self, clock: Clock, work: str, module: str = WORKER) -> None:
        self._clock = clock
        self._work = work
        self._module = module
        self._started: _Started | None = None
        self.ending = False

    @property
    def pid(self) -> int | None:
        """The process's number, while there is one."""
        return None if self._started is None else self._started.worker.pid

    async def start(self) -> None:
        """Have a process that is alive; raises ServerBusy where none is to be had."""
        await self._alive()

    @asynccontextmanager
    async def working(self, file: BinaryIO, order: FileOrder[T]) -> AsyncIterator["FileWork[T]"]:
        """Have it work on a file that has a descriptor; where the file stands afterwards is not known.

        In the block the pieces arrive; they raise what the process says, or WorkerDied. Raises ServerBusy or WorkerDied
        where no process works.
        """
        flow, worker = await self._begin(file, order)
        work = FileWork(self._clock, flow, worker)
        try:
            with Limit(self._clock, order.limit_s, work.end):
                yield work
        finally:
            with Limit(self._clock, STALL_LIMIT_S, worker.kill):
                await flow.aclose()

    def kill(self) -> None:
        """End the process now, and never start another."""
        self.ending = True
        if self._started is not None:
            self._started.worker.kill()

    async def terminate(self) -> None:
        """Kill, and wait until it is gone."""
        self.kill()
        if self._started is not None:
            await self._started.worker.end()
            self._started.files.close()

    async def _begin(self, file: BinaryIO, order: FileOrder[T]) -> tuple[RemoteFlow[Answer, T], WorkerProcess[Answer]]:
        """Have the process take the file. One that dies before is no fault of the file's: the next one may try."""
        with suppress(WorkerDied):
            return await self._try_to_begin(file, order)
        try:
            return await self._try_to_begin(file, order)
        except WorkerDied as death:
            raise WorkerDied(f"the process that {self._work} ended before it could begin") from death

    async def _try_to_begin(
        self, file: BinaryIO, order: FileOrder[T]
    ) -> tuple[RemoteFlow[Answer, T], WorkerProcess[Answer]]:
        started = await self._alive()
        flow = RemoteFlow(started.worker, order.piece_of, [order.cancellation])
        with suppress(ConnectionError):  # one that has gone is heard of below
            socket.send_fds(started.files, [b"file"], [file.fileno()])
        with Limit(self._clock, START_LIMIT_S, started.worker.kill):
            return await flow.begin(order.order, []), started.worker

    async def _alive(self) -> _Started:
        if self.ending:
            raise ShuttingDown
        if self._started is None or self._started.worker.death is not None:
            return await self._start()
        return self._started

    async def _start(self) -> _Started:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        worker: WorkerProcess[Answer] = WorkerProcess(
            "codec", self._module, answer_decoder(), partial(self._lost, ours), [theirs.fileno()]
        )
        started = self._started = _Started(worker, ours)  # already, so that it can be killed while it starts
        try:
            with theirs:
                await worker.start()
        except OSError as error:
            ours.close()
            self._started = None
            raise ServerBusy(f"there is no room for a process that {self._work}") from error
        return started

    def _lost(self, files: socket.socket) -> None:
        files.close()
        if self._started is not None and not self.ending:
            log.warning("a codec worker has ended: %s", self._started.worker.death)


class FileWork(Generic[T]):
    """The pieces that a process makes of a file, each within its time; one that takes too long is killed."""

    def __init__(self, clock: Clock, flow: RemoteFlow[Answer, T], worker: WorkerProcess[Answer]) -> None:
        self.too_late = False
        self._clock = clock
        self._flow = flow
        self._worker = worker

    def end(self) -> None:
        """Kill the process: its time is up."""
        self.too_late = True
        self._worker.kill()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        with Limit(self._clock, STALL_LIMIT_S, self.end):
            return await anext(self._flow)


class IdleWorkers:
    """Several of them, and which are idle; who asks first gets one first, and one that runs already if there is one."""

    def __init__(self, workers: Sequence[FileWorker]) -> None:
        self._workers = workers
        self._idle: asyncio.LifoQueue[FileWorker] = asyncio.LifoQueue()
        for worker in reversed(workers):
            self._idle.put_nowait(worker)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that there are."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def take(self) -> FileWorker:
        """Wait for one; it must be given back."""
        return await self._idle.get()

    def give_back(self, worker: FileWorker) -> None:
        """Let the next one have it."""
        self._idle.put_nowait(worker)

    def kill(self) -> None:
        """End every process now, whatever it does, and start none any more."""
        for worker in self._workers:
            worker.kill()

    async def terminate(self) -> None:
        """Kill, and wait until they are gone."""
        for worker in self._workers:
            await worker.terminate()
