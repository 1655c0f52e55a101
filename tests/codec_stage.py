"""Codecs of both isolations that end with their test and say what they count, and files for them."""

import asyncio
import gc
import io
import wave
from collections.abc import Callable

from antiphon.audio.decode import DecodeLimits
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.file_worker import WORKER
from antiphon.runtime.process_codec import ProcessCodec
from antiphon.testing import ManualClock
from antiphon.vocabulary.states import Isolation


def wav(frames: int, rate: int = 16_000, channels: int = 1) -> io.BytesIO:
    """A silent 16-bit file; decoded it takes four bytes a sample."""
    body = io.BytesIO()
    with wave.open(body, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * frames * channels))
    body.seek(0)
    return body


def containers() -> int:
    """How many files PyAV is writing, or holds without being told to let go."""
    return sum(type(it).__name__ == "OutputContainer" for it in gc.get_objects())


class Threads(ThreadCodec):
    """A codec of one thread."""

    def __init__(self, max_pending_bytes: int = 0, limits: DecodeLimits | None = None) -> None:
        super().__init__(limits or DecodeLimits(max_seconds=60), max_pending_bytes, threads=1)

    async def at_end(self) -> None:
        await self.terminate()

    async def settled(self) -> int:
        """What is counted once the thread and the loop are through with what they did."""
        await self._crew.call(len, "")
        await asyncio.sleep(0)
        return self._budget._taken_bytes


class Processes(ProcessCodec):
    """A codec of one worker unless it says otherwise, whose clock stands still."""

    def __init__(
        self,
        max_pending_bytes: int = 0,
        limits: DecodeLimits | None = None,
        workers: int = 1,
        module: str = WORKER,
    ) -> None:
        self.clock = ManualClock()
        limits = limits or DecodeLimits(max_seconds=60)
        super().__init__(limits, max_pending_bytes, workers, self.clock, module)

    async def at_end(self) -> None:
        await self.terminate()

    async def settled(self) -> int:
        """What is counted once the tasks, the thread and the loop are through with what they did."""
        await self._tasks.join()
        await self._crew.call(len, "")
        await asyncio.sleep(0)
        return self._budget._taken_bytes


CODECS: dict[Isolation, Callable[..., Threads | Processes]] = {
    Isolation.THREAD: Threads,
    Isolation.PROCESS: Processes,
}
