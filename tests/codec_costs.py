"""What it costs to encode an answer in a process rather than in a thread: `PYTHONPATH=tests python -m codec_costs`.

The server has wav and pcm encoded in threads; here both can be had in a process, to know what that would cost.
"""

import asyncio
import sys
import time
from collections.abc import Generator
from functools import partial
from typing import BinaryIO

from antiphon.audio.compressed import COMPRESSED, Piece
from antiphon.audio.decode import DecodeLimits
from antiphon.audio.encode import encode
from antiphon.ports.codec import AudioFormat, Codec, Encoded
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.codec_messages import Encode, order_decoder
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.process_codec import ProcessCodec
from antiphon.vocabulary.audio import Pcm
from antiphon.worker.codec import CodecWorker, encode_file
from antiphon.worker.lifeline import socket_of, tie_to
from antiphon.worker.line import Line
from audio_assets import tone

RATE = 22_050
SECONDS = (0.1, 3.0, 60.0)
ROUNDS = 7
_PIECE_BYTES = 64 * 1024


class Crossing(ProcessCodec):
    """Has every format encoded in a process."""

    async def encode(self, pcm: Pcm, audio_format: AudioFormat) -> Encoded:
        encoder = await self._encoders.take()
        return await self._attended(partial(self._encode, encoder, pcm, audio_format))


def encode_any(samples: BinaryIO, order: Encode) -> Generator[Piece, None, None]:
    if order.audio_format in COMPRESSED:
        yield from encode_file(samples, order)
        return
    samples.seek(0)
    offset = 0
    with encode(Pcm.from_bytes(samples.read(), order.rate, order.channels), order.audio_format).body as body:
        while data := body.read(_PIECE_BYTES):
            yield Piece(offset, data)
            offset += len(data)


async def milliseconds(codec: Codec, pcm: Pcm, audio_format: AudioFormat) -> float:
    """The best, and the first one is not counted: it starts the process."""
    taken = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        (await codec.encode(pcm, audio_format)).body.close()
        taken.append((time.perf_counter() - began) * 1000)
    return min(taken[1:])


async def measure() -> None:
    limits = DecodeLimits(max_seconds=3600)
    threads = ThreadCodec(limits, 0, threads=2)
    processes = Crossing(limits, 0, 1, LoopClock(), "codec_costs")
    print("| format | seconds | kB in, out | in a thread | in a process |\n| --- | --- | --- | --- | --- |")
    for audio_format in AudioFormat:
        for seconds in SECONDS:
            pcm = Pcm.from_bytes(tone(220, seconds, RATE).tobytes(), RATE)
            encoded = await threads.encode(pcm, audio_format)
            encoded.body.close()
            kilobytes = f"{pcm.samples.nbytes / 1000:.0f}, {encoded.size_bytes / 1000:.0f}"
            here = await milliseconds(threads, pcm, audio_format)
            there = await milliseconds(processes, pcm, audio_format)
            print(f"| {audio_format} | {seconds:g} | {kilobytes} | {here:.2f} | {there:.2f} |")
    await processes.terminate()
    await threads.terminate()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        asyncio.run(measure())
    else:
        descriptor, parent, files = map(int, sys.argv[1:])
        tie_to(parent)
        CodecWorker(Line(socket_of(descriptor), order_decoder()), socket_of(files), encode=encode_any).serve()
