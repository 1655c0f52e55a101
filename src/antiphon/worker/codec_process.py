"""The process of one codec worker: `python -m antiphon.worker.codec_process FD PARENT UPLOADS`."""

import os
import resource
import sys

from antiphon.runtime.permanent import permanent_imports
from antiphon.worker.lifeline import socket_of, tie_to

MAX_ADDRESS_BYTES = 1024**3
"""All that the process may map. Python, numpy, soxr and FFmpeg map 200 MiB, each thread's heap 64 more, a decode of
any accepted container less than 50: it goes block by block, so its length does not matter."""


def confine() -> None:
    """Take from this process what no decoder needs; call it before it sees an upload, and before numpy is there.

    Its memory is bounded, it writes no file, and a crash leaves none.
    """
    for limit, value in (
        (resource.RLIMIT_AS, MAX_ADDRESS_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it maps 40 MiB for each, and nothing here multiplies matrices


def main(descriptor: int, parent: int, uploads: int) -> None:
    """Serve until the server closes its end, and then end at once, whatever the decoder does."""
    tie_to(parent)
    confine()
    with permanent_imports():
        from antiphon.runtime.codec_messages import order_decoder
        from antiphon.worker.codec import CodecWorker
        from antiphon.worker.line import Line

    CodecWorker(Line(socket_of(descriptor), order_decoder()), socket_of(uploads)).serve()
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
