"""The process that inspects models: `python -m antiphon.worker.inspection FD PARENT`, as `Inspector` starts it."""

import os
import resource
import sys

from antiphon.runtime.permanent import permanent_imports
from antiphon.worker.lifeline import socket_of, tie_to

with permanent_imports():
    import socket

    from antiphon.ports.adapter import Adapter
    from antiphon.runtime.discovery import make_adapter
    from antiphon.runtime.hosts.engine import Engine
    from antiphon.runtime.hosts.messages import Inspected
    from antiphon.runtime.hosts.translation import spec_of
    from antiphon.runtime.inspection import MAX_ADDRESS_BYTES, MAX_ANSWER_BYTES, Look, look_decoder
    from antiphon.runtime.wire.coding import Message, encoded
    from antiphon.runtime.wire.faults import failed
    from antiphon.vocabulary.errors import ConfigError

_LENGTH_BYTES = 4


def confine() -> None:
    """Bound what the process may map, and leave no file behind in a crash."""
    for limit, value in ((resource.RLIMIT_AS, MAX_ADDRESS_BYTES), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for an adapter that imports numpy: it maps 40 MiB for each thread


def serve(line: socket.socket) -> None:
    """Inspect what is asked for until the server closes its end."""
    decoder = look_decoder()
    with line.makefile("rb") as asked:
        while length := asked.read(_LENGTH_BYTES):
            answer = encoded(_answer(decoder.decode(memoryview(asked.read(int.from_bytes(length))))))
            if len(answer) > MAX_ANSWER_BYTES:
                fault = ConfigError(f"what it says of the model is longer than {MAX_ANSWER_BYTES} bytes", param="path")
                answer = encoded(failed(fault))
            line.sendall(len(answer).to_bytes(_LENGTH_BYTES) + answer)


def _answer(look: Look) -> Message:
    try:
        return Inspected(Engine(_adapter(look.adapter), spec_of(look.spec)).inspect())
    except BaseException as error:  # noqa: BLE001 (the server owns it)
        return failed(error)


def _adapter(target: str) -> Adapter:
    try:
        return make_adapter(target)
    except ConfigError as error:
        raise ConfigError(error.message, param="family") from error


def main(descriptor: int, parent: int) -> None:
    """Serve, and then end at once."""
    tie_to(parent)
    confine()
    serve(socket_of(descriptor))
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
