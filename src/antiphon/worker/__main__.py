"""The process of one engine: `python -m antiphon.worker FD PARENT`, as the server's `WorkerProcess` starts it."""

import os
import sys

from antiphon.runtime.permanent import permanent_imports
from antiphon.worker.lifeline import socket_of, tie_to


def main(descriptor: int, parent: int) -> None:
    """Serve until the server closes its end, and then end at once, whatever the engine does."""
    tie_to(parent)
    with permanent_imports():
        from antiphon.runtime.hosts.messages import order_decoder
        from antiphon.worker.engine import EngineWorker
        from antiphon.worker.line import Line

    EngineWorker(Line(socket_of(descriptor), order_decoder())).serve()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
