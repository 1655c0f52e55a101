"""A codec worker that does what its upload or its sound says, in the same confined process: for tests of its server."""

import faulthandler
import os
import signal
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import BinaryIO

from antiphon.vocabulary.audio import Pcm
from antiphon.worker.codec_process import confine
from antiphon.worker.lifeline import socket_of, tie_to

RATE = 16_000


def upload(act: str) -> bytes:
    """A file that asks for an act."""
    return act.encode()


def sound(act: str) -> Pcm:
    """Samples whose encoder is asked for an act."""
    return Pcm.from_bytes(array("f", list(act.encode())).tobytes(), RATE)


def _speak(text: str) -> Iterator[list[float]]:
    yield [float(ord(character)) for character in text]


def _tone() -> Iterator[list[float]]:
    yield from [[0.0]] * 3


def _endless() -> Iterator[list[float]]:
    while True:
        yield [0.0]


def _dribble() -> Iterator[list[float]]:
    while True:
        yield [0.0]
        time.sleep(0.01)  # each is timed anew, and the test's clock keeps every timer


def _hang() -> Iterator[list[float]]:
    yield [0.0]
    while True:
        time.sleep(60)


def _hold_gil() -> Iterator[list[float]]:
    import ctypes

    yield [0.0]
    ctypes.PyDLL(None).sleep(600)


def _swallow() -> Iterator[list[float]]:
    held = []
    while True:
        held.append(b"x" * 2**26)
        yield [0.0]


def _overflow() -> Iterator[list[float]]:
    """What a C library does when it has no memory and does not look."""
    try:
        yield from _swallow()
    except MemoryError:
        os.abort()


def _die(number: int) -> Iterator[list[float]]:
    yield [0.0]
    os.kill(os.getpid(), number)
    yield from _hang()  # another thread may be the one that it ends first


def _crash() -> Iterator[list[float]]:
    yield [0.0]
    faulthandler._sigsegv()


def _stumble() -> Iterator[list[float]]:
    yield [0.0]
    raise RuntimeError("a fault of the decoder's")


def _write() -> Iterator[list[float]]:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"x")
    yield [0.0]


def _inflate() -> Iterator[list[float]]:
    yield from [[0.0] * 2**14] * 8


ACTS: Mapping[str, Callable[[], Iterator[list[float]]]] = {
    "tone": _tone,
    "endless": _endless,
    "dribble": _dribble,
    "hang": _hang,
    "hold_gil": _hold_gil,
    "swallow": _swallow,
    "overflow": _overflow,
    "kill": lambda: _die(signal.SIGKILL),
    "abort": lambda: _die(signal.SIGABRT),
    "segfault": _crash,
    "exit": lambda: os._exit(0),
    "stumble": _stumble,
    "write": _write,
    "inflate": _inflate,
    "modules": lambda: _speak(" ".join(sorted(sys.modules))),
    "nothing": lambda: iter(()),
}


def main(descriptor: int, parent: int, uploads: int) -> None:
    tie_to(parent)
    confine()
    import numpy as np

    from antiphon.audio.blocks import AudioBlocks, Samples
    from antiphon.audio.compressed import Piece
    from antiphon.audio.limits import DecodeLimits
    from antiphon.runtime.codec_messages import Encode, order_decoder
    from antiphon.worker.codec import CodecWorker
    from antiphon.worker.line import Line

    def open_upload(body: BinaryIO, limits: DecodeLimits) -> AudioBlocks:
        body.seek(0)
        act = ACTS[body.read().decode().strip()]

        def blocks() -> Iterator[Samples]:
            for samples in act():
                yield np.array(samples, np.float32)

        return AudioBlocks(RATE, 1, blocks())

    def encode(samples: BinaryIO, order: Encode) -> Generator[Piece, None, None]:
        samples.seek(0)
        act = ACTS[bytes(int(code) for code in array("f", samples.read())).decode()]
        size = 0
        for floats in act():
            yield Piece(size, bytes(len(floats)))
            size += len(floats)

    CodecWorker(Line(socket_of(descriptor), order_decoder()), socket_of(uploads), open_upload, encode).serve()
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
