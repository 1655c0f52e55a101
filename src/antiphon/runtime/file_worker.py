"""A process that decodes uploads, one at a time: started when it is needed, timed, killed, replaced when it has ended.

It parses nothing. What the process says of a sound is held against the limits here as well: whoever can break a decoder
can make it say anything.
"""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, TypeAlias

from antiphon.audio.limits import FIELD, DecodeLimits
from antiphon.ports.clock import Clock
from antiphon.runtime.codec_messages import Answer, Block, Decode, answer_decoder
from antiphon.runtime.watch import Limit
from antiphon.runtime.wire.flow import RemoteFlow
from antiphon.runtime.wire.worker import WorkerProcess
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError, InvalidRequest, ServerBusy, ShuttingDown, WorkerDied
from antiphon.vocabulary.spool import PcmWriter
from antiphon.vocabulary.tasks import Cancellation

WORKER = "antiphon.worker.codec_process"
"""The module that the process runs; the server never imports it."""

START_LIMIT_S = 60.0
"""A process that has not begun by then is not going to. A slow disk takes a few seconds to bring the libraries."""
STALL_LIMIT_S = 10.0
"""How long a decode may take to its next block of samples: several hundred times what the slowest needs."""
BYTES_PER_S = 16 * 1024
"""What a decode must read, beyond the first stall: the densest speech in use is 0.75 kB a second of sound, and is
decoded a hundred times as fast as it sounds. A machine may be several times slower than that."""

log = logging.getLogger(__name__)

_Begun: TypeAlias = tuple[RemoteFlow[Answer, Pcm], WorkerProcess[Answer]]


@dataclass(frozen=True, slots=True)
class _Started:
    worker: WorkerProcess[Answer]
    uploads: socket.socket


class UploadDecoder:
    """One process at most. Each call belongs to a task that is never cancelled, and no two overlap."""

    def __init__(self, clock: Clock, limits: DecodeLimits, module: str = WORKER) -> None:
        self._clock = clock
        self._limits = limits
        self._module = module
        self._started: _Started | None = None
        self._ending = False

    @property
    def pid(self) -> int | None:
        """The process's number, while there is one."""
        return None if self._started is None else self._started.worker.pid

    async def start(self) -> None:
        """Have a process that is alive; raises ServerBusy where none is to be had."""
        await self._alive()

    async def decode(self, upload: BinaryIO, on_growth: Callable[[int], None], cancellation: Cancellation) -> Pcm:
        """Decode a file that has a descriptor; its position afterwards is anywhere.

        `on_growth` is told each block's size in bytes on the loop, and may raise. A cancellation ends it at the next
        block; what it returns then is nobody's. Raises InvalidRequest and TooLarge (param "file"), the former also for
        an upload that takes too long or costs the process its life; ServerBusy or WorkerDied where no process works.
        """
        flow, worker = await self._begin(upload, cancellation)
        patience = _Patience(self._clock, worker)
        total_s = STALL_LIMIT_S + os.fstat(upload.fileno()).st_size / BYTES_PER_S
        try:
            with Limit(self._clock, total_s, patience.end):
                return await _collected(flow, _Sound(self._limits, on_growth), patience)
        except WorkerDied as death:
            raise self._fault(patience.ended) from death
        finally:
            with Limit(self._clock, STALL_LIMIT_S, worker.kill):
                await flow.aclose()

    def kill(self) -> None:
        """End the process now, and never start another."""
        self._ending = True
        if self._started is not None:
            self._started.worker.kill()

    async def terminate(self) -> None:
        """Kill, and wait until it is gone."""
        self.kill()
        if self._started is not None:
            await self._started.worker.end()
            self._started.uploads.close()

    async def _begin(self, upload: BinaryIO, cancellation: Cancellation) -> _Begun:
        """Have the process take the upload. One that dies before is no fault of the upload's: the next one may try."""
        with suppress(WorkerDied):
            return await self._try_to_begin(upload, cancellation)
        try:
            return await self._try_to_begin(upload, cancellation)
        except WorkerDied as death:
            raise WorkerDied("the process that decodes audio ended before it could begin") from death

    async def _try_to_begin(self, upload: BinaryIO, cancellation: Cancellation) -> _Begun:
        started = await self._alive()
        flow = RemoteFlow(started.worker, _samples_of, [cancellation])
        with suppress(ConnectionError):  # one that has gone is heard of below
            socket.send_fds(started.uploads, [b"upload"], [upload.fileno()])
        with Limit(self._clock, START_LIMIT_S, started.worker.kill):
            return await flow.begin(Decode(self._limits), []), started.worker

    async def _alive(self) -> _Started:
        if self._ending:
            raise ShuttingDown("the server is shutting down")
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
            raise ServerBusy("there is no room for a process to decode the audio in") from error
        return started

    def _lost(self, uploads: socket.socket) -> None:
        uploads.close()
        if self._started is not None and not self._ending:
            log.warning("a codec worker has ended: %s", self._started.worker.death)

    def _fault(self, too_late: bool) -> AntiphonError:
        if self._ending:
            return ShuttingDown("the server is shutting down")
        return InvalidRequest("the audio could not be decoded" + " in time" * too_late, param=FIELD)


class _Patience:
    """Kills a process that takes too long, and knows that it did."""

    def __init__(self, clock: Clock, worker: WorkerProcess[Answer]) -> None:
        self.ended = False
        self._clock = clock
        self._worker = worker

    def end(self) -> None:
        self.ended = True
        self._worker.kill()

    async def next_of(self, flow: RemoteFlow[Answer, Pcm]) -> Pcm | None:
        with Limit(self._clock, STALL_LIMIT_S, self.end):
            return await anext(flow, None)


class _Sound:
    """Blocks on their way to one sound, which is believed no further than the upload's limits go."""

    def __init__(self, limits: DecodeLimits, on_growth: Callable[[int], None]) -> None:
        self._limits = limits
        self._on_growth = on_growth
        self._writer: PcmWriter | None = None
        self._frames = 0

    def add(self, block: Pcm) -> None:
        if self._writer is None:
            self._limits.check_format(block.rate, block.channels)
            self._writer = PcmWriter(block.rate, block.channels, self._on_growth)
        if (block.rate, block.channels) != (self._writer.rate, self._writer.channels):
            raise EngineError("a codec worker changed the format of a sound")
        self._frames += block.frames
        self._limits.check_length(self._frames, block.rate, block.channels)
        self._writer.write(block.samples.cast("B"))

    def finish(self) -> Pcm:
        if self._writer is None:
            raise InvalidRequest("the audio could not be decoded", param=FIELD)
        return self._writer.finish()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


async def _collected(flow: RemoteFlow[Answer, Pcm], sound: _Sound, patience: _Patience) -> Pcm:
    with closing(sound):
        while (block := await patience.next_of(flow)) is not None:
            sound.add(block)
        return sound.finish()


def _samples_of(answer: Answer, sounds: Sequence[Pcm]) -> Pcm:
    if not isinstance(answer, Block) or len(sounds) != 1:
        raise EngineError("a codec worker gave an answer to another question")
    return sounds[0]
