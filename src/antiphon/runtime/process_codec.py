"""The codec of process isolation: uploads are decoded, and compressed answers encoded, in worker processes.

Each works on one file at a time, and those that get strangers' uploads encode nobody's answer. What stays in the
server's threads is arithmetic on samples (resampling, and 16-bit samples behind a header of ours), and streams, whose
encoders live as long as they do. ADR 10 has the measurements.
"""

import asyncio
import io
import logging
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO, TypeAlias, TypeVar

from antiphon.audio.compressed import COMPRESSED
from antiphon.audio.limits import DecodeLimits
from antiphon.ports.clock import Clock
from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.runtime.answer_encoder import encode_in
from antiphon.runtime.codecs import Share, ThreadCodec
from antiphon.runtime.file_worker import WORKER, FileWorker, IdleWorkers
from antiphon.runtime.owned import OwnedTasks
from antiphon.runtime.upload_decoder import decode_in
from antiphon.runtime.waiting import no_longer_than
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.spool import pieces_of
from antiphon.vocabulary.tasks import Cancellation

MAX_WORKERS = 4
"""More uploads than these are decoded one after another, and so are answers encoded: each worker keeps some 50 MB."""

_PIECE_SAMPLES = 256 * 1024

log = logging.getLogger(__name__)

T = TypeVar("T")

_Source: TypeAlias = BinaryIO | bytes
"""An upload that a task may keep, whatever becomes of the body that it came from."""


class ProcessCodec(ThreadCodec):
    """`Codec` over worker processes. What hangs or kills a decoder or an encoder costs that worker, which is replaced.

    The first decoder is started by `start`, the others, and encoders, when they are needed. Units: `max_pending_bytes`
    as in ThreadCodec, `cores` for the number of threads, of decoders and of encoders.
    """

    def __init__(
        self, limits: DecodeLimits, max_pending_bytes: int, cores: int, clock: Clock, module: str = WORKER
    ) -> None:
        super().__init__(limits, max_pending_bytes, cores)
        count = min(cores, MAX_WORKERS)
        self._decoders = IdleWorkers([FileWorker(clock, "decodes audio", module) for _ in range(count)])
        self._encoders = IdleWorkers([FileWorker(clock, "encodes audio", module) for _ in range(count)])
        self._tasks = OwnedTasks()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that there are, those that decode first."""
        return self._decoders.pids + self._encoders.pids

    async def start(self) -> None:
        """Start one worker, so that the first upload need not wait for it; it gets ready by itself."""
        decoder = await self._decoders.take()
        try:
            await self._tasks.attend(self._begin(decoder))
        except ServerBusy:
            log.warning("there is no codec worker yet", exc_info=True)

    async def decode(self, body: BinaryIO, wait_s: float = 0) -> Pcm:
        """Decode an upload; its share of the budget is held for as long as the samples live.

        `body` is not read afterwards, and where it stands is not promised.
        """
        source = _source_of(body)
        try:
            decoder = await no_longer_than(wait_s, self._decoders.take(), "no decoder")
        except BaseException:
            _close(source)
            raise
        return await self._attended(partial(self._decode, decoder, source, Share(self._budget)))

    async def encode(self, pcm: Pcm, audio_format: AudioFormat) -> Encoded:
        """Encode a whole answer, where that is more than arithmetic in a process."""
        if audio_format not in COMPRESSED:
            return await super().encode(pcm, audio_format)
        encoder = await self._encoders.take()
        return await self._attended(partial(self._encode, encoder, pcm, audio_format))

    def kill(self) -> None:
        """End every worker now, whatever it does, and start none any more."""
        self._decoders.kill()
        self._encoders.kill()

    async def terminate(self) -> None:
        """Kill the workers, whose uploads have no takers any more, and wait until all is gone."""
        self.kill()
        await self._tasks.join()
        await self._decoders.terminate()
        await self._encoders.terminate()
        self.close()

    async def _attended(self, work: Callable[[Cancellation], Coroutine[Any, Any, T]]) -> T:  # as asyncio types them
        cancellation = Cancellation()
        try:
            return await self._tasks.attend(work(cancellation))
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    async def _begin(self, decoder: FileWorker) -> None:
        try:
            await decoder.start()
        finally:
            self._decoders.give_back(decoder)

    async def _decode(self, decoder: FileWorker, source: _Source, share: Share, cancellation: Cancellation) -> Pcm:
        try:
            upload = await self._crew.call(_spooled, [source]) if isinstance(source, bytes) else source
            with closing(upload):
                pcm = await decode_in(decoder, self._limits, upload, share.grow_here, cancellation)
        except BaseException:
            share.give_back()  # now: whoever reports the error may keep it, and with it this frame
            raise
        finally:
            self._decoders.give_back(decoder)
        share.settle()
        return replace(pcm, owner=share)

    async def _encode(
        self, encoder: FileWorker, pcm: Pcm, audio_format: AudioFormat, cancellation: Cancellation
    ) -> Encoded:
        try:
            with closing(await self._crew.call(_spooled, pieces_of(pcm, _PIECE_SAMPLES))) as samples:
                return await encode_in(encoder, samples, pcm, audio_format, cancellation)
        finally:
            self._encoders.give_back(encoder)


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


def _spooled(pieces: Iterable[bytes | memoryview]) -> BinaryIO:
    file = tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115 (closed by the one who asked for it)
    for piece in pieces:
        file.write(piece)
    file.flush()
    return file
