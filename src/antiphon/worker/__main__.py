"""The process of one engine: `python -m antiphon.worker FD PARENT`, as the server's `WorkerProcess` starts it."""

import gc
import os
import sys

from antiphon.worker.lifeline import socket_of, tie_to


def main(descriptor: int, parent: int) -> None:
    """Serve until the server closes its end, and then end at once, whatever the engine does."""
    tie_to(parent)
    gc.disable()  # what is imported here stays, so that no collection need look through it, now or later
    from antiphon.runtime.hosts.messages import order_decoder
    from antiphon.worker.engine import EngineWorker
    from antiphon.worker.line import Line

    gc.freeze()
    gc.enable()
    EngineWorker(Line(socket_of(descriptor), order_decoder())).serve()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
