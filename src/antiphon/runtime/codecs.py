"""The codec of thread isolation: a bounded crew decodes and encodes, within one budget of decoded audio."""

import asyncio
import math
from concurrent.futures import Future
from dataclasses import replace
from typing import BinaryIO

from antiphon.audio.convert import PieceConverter, convert
from antiphon.audio.decode import DecodeLimits, decode
from antiphon.audio.encode import StreamEncoder, encode
from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.runtime.hosts.crew import Crew, report
from antiphon.runtime.waiting import no_longer_than
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ServerBusy

_STEP_BYTES = 1024 * 1024
"""How much a decoding thread takes from the budget ahead of its need at most, since asking means waiting for the loop.
What it did not need goes back at its end."""

_AHEAD_SHARE = 16
"""Of what is left, no more than this part is taken ahead: near the limit, what one upload may need later must not keep
out another that needs it now."""


class ThreadCodec:
    """`Codec` over daemon threads.

    Units: `max_pending_bytes` of decoded uploads alive at once, of which one may be as large as all; 0 without bound.
    """

    def __init__(self, limits: DecodeLimits, max_pending_bytes: int, threads: int) -> None:
        self._limits = limits.within(max_pending_bytes)
        self._budget = Budget(max_pending_bytes)
        self._crew = Crew("antiphon-codec", threads)
        self._turns = asyncio.Semaphore(threads)

    async def start(self) -> None:
        """Do nothing: the threads are there."""

    async def decode(self, body: BinaryIO, wait_s: float = 0) -> Pcm:
        """Decode an upload; its share of the budget is held for as long as the samples live."""
        await no_longer_than(wait_s, self._turns.acquire(), "no decoder")
        share = Share(self._budget)
        decoding = asyncio.ensure_future(self._crew.call(_decode, body, self._limits, share))
        decoding.add_done_callback(self._end_turn)
        pcm = await asyncio.shield(decoding)  # the thread goes on, and so does its turn, if the caller leaves
        share.settle()
        return replace(pcm, owner=share)

    async def convert(self, pcm: Pcm, rate: int, channels: int) -> Pcm:
        """Resample and mix."""
        if (pcm.rate, pcm.channels) == (rate, channels):
            return pcm
        return await self._crew.call(convert, pcm, rate, channels)

    def open_converter(self, given: Pcm, rate: int, channels: int) -> "_CrewConverter":
        """Begin to convert audio of unknown length."""
        return _CrewConverter(self._crew, PieceConverter(given.rate, given.channels, rate, channels))

    async def encode(self, pcm: Pcm, audio_format: AudioFormat) -> Encoded:
        """Encode a whole answer."""
        return await self._crew.call(encode, pcm, audio_format)

    def open_encoder(self, audio_format: AudioFormat, rate: int, channels: int) -> "_CrewEncoder":
        """Begin an answer of unknown length."""
        return _CrewEncoder(self._crew, StreamEncoder(audio_format, rate, channels))

    def _end_turn(self, decoding: "asyncio.Future[Pcm]") -> None:
        self._turns.release()
        if not decoding.cancelled():
            decoding.exception()  # it is known to the caller, or nobody wants to know

    def kill(self) -> None:
        """Do nothing: a thread cannot be ended from outside."""

    def close(self) -> None:
        """Let the threads end after what they have to do."""
        self._crew.stop()

    async def terminate(self) -> None:
        """Close, and wait until nothing is left that the server would have to wait for."""
        self.close()


def _decode(body: BinaryIO, limits: DecodeLimits, share: "Share") -> Pcm:
    try:
        return decode(body, limits, share.grow)
    except BaseException:
        share.give_back()  # now: whoever reports the error may keep it, and with it this frame
        raise


class _CrewEncoder:
    def __init__(self, crew: Crew, encoder: StreamEncoder) -> None:
        self.content_type = encoder.content_type
        self._crew = crew
        self._encoder = encoder

    def header(self) -> bytes:
        return self._encoder.header()

    async def feed(self, pcm: Pcm) -> bytes:
        return await self._crew.call(self._encoder.feed, pcm)

    async def finish(self) -> bytes:
        return await self._crew.call(self._encoder.finish) if self._encoder.holds_back else b""

    def close(self) -> None:
        if self._encoder.holds_back:
            self._crew.post(self._encoder.close)


class _CrewConverter:
    def __init__(self, crew: Crew, converter: PieceConverter) -> None:
        self._crew = crew
        self._converter = converter

    async def feed(self, pcm: Pcm) -> Pcm:
        return await self._crew.call(self._converter.feed, pcm)

    async def finish(self) -> Pcm:
        return await self._crew.call(self._converter.finish)


class Budget:
    """Bytes of decoded audio in flight; counted on the event loop alone."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._taken_bytes = 0

    def take(self, needed_bytes: int, ahead_bytes: int = 0) -> int:
        """Charge an upload for what it needs now, and for up to so much ahead if there is plenty; the size charged.

        Raises ServerBusy while others are in its way; one that would not fit alone was refused by its limits.
        """
        left_bytes = self._limit_bytes - self._taken_bytes if self._limit_bytes else math.inf
        if needed_bytes > left_bytes:
            raise ServerBusy("too much audio waits already (max_pending_audio_mb)")
        size_bytes = needed_bytes + int(min(ahead_bytes, (left_bytes - needed_bytes) / _AHEAD_SHARE))
        self._taken_bytes += size_bytes
        return size_bytes

    def give(self, size_bytes: int) -> None:
        self._taken_bytes -= size_bytes


class Share:
    """What one upload holds of the budget; it goes back when the audio is dropped, in whatever thread that happens."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self._used_bytes = 0
        self._held_bytes = 0

    def grow(self, size_bytes: int) -> None:
        """Account for a block, from the decoding thread; asks the loop, and waits for it, once a step."""
        self._used_bytes += size_bytes
        if self._used_bytes > self._held_bytes:
            answer: Future[None] = Future()
            self._loop.call_soon_threadsafe(self._take, self._used_bytes - self._held_bytes, answer)
            answer.result()

    def grow_here(self, size_bytes: int) -> None:
        """Account for a block on the loop itself."""
        self._used_bytes += size_bytes
        if self._used_bytes > self._held_bytes:
            self._held_bytes += self._budget.take(self._used_bytes - self._held_bytes)

    def give_back(self) -> None:
        """Return all that is held; harmless when done twice, in any thread, but not while `grow` runs."""
        held_bytes, self._held_bytes = self._held_bytes, 0
        report(self._loop, self._budget.give, held_bytes)

    def settle(self) -> None:
        """Give back what was held and not used."""
        self._budget.give(self._held_bytes - self._used_bytes)
        self._held_bytes = self._used_bytes

    def __del__(self) -> None:
        self.give_back()

    def _take(self, needed_bytes: int, answer: "Future[None]") -> None:
        try:
            self._held_bytes += self._budget.take(needed_bytes, _STEP_BYTES)
        except ServerBusy as refusal:
            answer.set_exception(refusal)
        else:
            answer.set_result(None)
