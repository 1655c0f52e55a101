"""The codec of process isolation: uploads are decoded in worker processes, several of them, one upload at a time each.

What stays in the server's threads is arithmetic on samples (resampling, and 16-bit samples behind a header of ours):
there is nothing to parse in it. ADR 10 has the measurements.
"""

import asyncio
import io
import logging
import os
import tempfile
from contextlib import closing
from dataclasses import replace
from typing import BinaryIO, TypeAlias

from antiphon.audio.limits import DecodeLimits
from antiphon.ports.clock import Clock
from antiphon.runtime.codecs import Share, ThreadCodec
from antiphon.runtime.owned import OwnedTasks
from antiphon.runtime.upload_decoder import WORKER, UploadDecoder
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.tasks import Cancellation

MAX_WORKERS = 4
"""More uploads than these are decoded one after another: each worker keeps some 50 MB."""

log = logging.getLogger(__name__)

_Source: TypeAlias = BinaryIO | bytes
"""An upload that a task may keep, whatever becomes of the body that it came from."""


class ProcessCodec(ThreadCodec):
    """`Codec` over worker processes. An upload that hangs or kills a decoder costs that worker, which is replaced.

    The first worker is started by `start`, the others when more uploads are there at once. Units: `max_pending_bytes`
    as in ThreadCodec, `cores` for the number of threads and of workers.
    """

    def __init__(
        self, limits: DecodeLimits, max_pending_bytes: int, cores: int, clock: Clock, module: str = WORKER
    ) -> None:
        super().__init__(limits, max_pending_bytes, cores)
        self._decoders = [UploadDecoder(clock, limits, module) for _ in range(min(cores, MAX_WORKERS))]
        self._idle: asyncio.LifoQueue[UploadDecoder] = asyncio.LifoQueue()
        for decoder in reversed(self._decoders):
            self._idle.put_nowait(decoder)
        self._tasks = OwnedTasks()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that there are."""
        return [decoder.pid for decoder in self._decoders if decoder.pid is not None]

    async def start(self) -> None:
        """Start one worker, so that the first upload need not wait for it; it gets ready by itself."""
        decoder = await self._idle.get()
        try:
            await self._tasks.attend(self._begin(decoder))
        except ServerBusy:
            log.warning("there is no codec worker yet", exc_info=True)

    async def decode(self, body: BinaryIO) -> Pcm:
        """Decode an upload; its share of the budget is held for as long as the samples live.

        `body` is not read afterwards, and where it stands is not promised.
        """
        source = _source_of(body)
        try:
            decoder = await self._idle.get()
        except BaseException:
            _close(source)
            raise
        cancellation = Cancellation()
        try:
            return await self._tasks.attend(self._decode(decoder, source, Share(self._budget), cancellation))
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    def kill(self) -> None:
        """End every worker now, whatever it does, and start none any more."""
        for decoder in self._decoders:
            decoder.kill()

    async def terminate(self) -> None:
        """Kill the workers, whose uploads have no takers any more, and wait until all is gone."""
        self.kill()
        await self._tasks.join()
        for decoder in self._decoders:
            await decoder.terminate()
        self.close()

    async def _begin(self, decoder: UploadDecoder) -> None:
        try:
            await decoder.start()
        finally:
            self._idle.put_nowait(decoder)

    async def _decode(self, decoder: UploadDecoder, source: _Source, share: Share, cancellation: Cancellation) -> Pcm:
        try:
            upload = await self._crew.call(_spooled, source) if isinstance(source, bytes) else source
            with closing(upload):
                pcm = await decoder.decode(upload, share.grow_here, cancellation)
        except BaseException:
            share.give_back()  # now: whoever reports the error may keep it, and with it this frame
            raise
        finally:
            self._idle.put_nowait(decoder)
        share.settle()
        return replace(pcm, owner=share)


def _source_of(body: BinaryIO) -> _Source:
    try:
        descriptor = os.dup(body.fileno())
    except io.UnsupportedOperation:
        return body.getvalue() if isinstance(body, io.BytesIO) else body.read()
    body.flush()
    return os.fdopen(descriptor, "rb")


def _close(source: _Source) -> None:
    if not isinstance(source, bytes):
        source.close()


def _spooled(data: bytes) -> BinaryIO:
    file = tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115 (closed by the one who asked for it)
    file.write(data)
    file.flush()
    return file
