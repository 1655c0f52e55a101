"""An upload on its way to a sound, through a process that decodes it. It parses nothing.

What the process says of the sound is held against the limits here as well: whoever can break a decoder can make it say
anything.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import BinaryIO

from antiphon.audio.limits import FIELD, DecodeLimits
from antiphon.runtime.codec_messages import Answer, Block, Decode
from antiphon.runtime.file_worker import STALL_LIMIT_S, FileOrder, FileWorker
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError, InvalidRequest, ShuttingDown, WorkerDied
from antiphon.vocabulary.spool import PcmWriter
from antiphon.vocabulary.tasks import Cancellation

BYTES_PER_S = 16 * 1024
"""What a decode must read, beyond the first stall: the densest speech in use is 0.75 kB a second of sound, and is
decoded a hundred times as fast as it sounds. A machine may be several times slower than that."""


async def decode_in(
    worker: FileWorker,
    limits: DecodeLimits,
    upload: BinaryIO,
    on_growth: Callable[[int], None],
    cancellation: Cancellation,
) -> Pcm:
    """Decode a file that has a descriptor; its position afterwards is anywhere.

    `on_growth` is told each block's size in bytes on the loop, and may raise. A cancellation ends it at the next
    block; what it returns then is nobody's. Raises InvalidRequest and TooLarge (param "file"), the former also for
    an upload that takes too long or costs the process its life; ServerBusy or WorkerDied where no process works.
    """
    limit_s = STALL_LIMIT_S + os.fstat(upload.fileno()).st_size / BYTES_PER_S
    async with worker.working(upload, FileOrder(Decode(limits), _samples_of, limit_s, cancellation)) as blocks:
        try:
            with closing(_Sound(limits, on_growth)) as sound:
                async for block in blocks:
                    sound.add(block)
                return sound.finish()
        except WorkerDied as death:
            raise _fault(worker, blocks.too_late) from death


def _fault(worker: FileWorker, too_late: bool) -> AntiphonError:
    if worker.ending:
        return ShuttingDown()
    return InvalidRequest("the audio could not be decoded" + " in time" * too_late, param=FIELD)


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


def _samples_of(answer: Answer, sounds: Sequence[Pcm]) -> Pcm:
    if not isinstance(answer, Block) or len(sounds) != 1:
        raise EngineError("a codec worker gave an answer to another question")
    return sounds[0]
