"""An engine whose `inspect` does what its model's folder is called: for tests of what that costs the server."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task

TARGET = "ravenous_engine:RavenousAdapter"


HANG_GUARD_MS = 60_000


@contextmanager
def begun(folder: Path) -> Iterator[Callable[[], None]]:
    """Make the place that an inspection of `folder / "wait"` announces itself at; what is yielded waits for that."""
    fifo = folder / "wait.begun"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(reader)

    def wait() -> None:
        assert poll.poll(HANG_GUARD_MS), "nothing was inspected"

    try:
        yield wait
    finally:
        os.close(reader)


class RavenousAdapter:
    """The family `ravenous`."""

    family = "ravenous"

    def inspect(self, spec: ModelSpec) -> Capability:
        """Take all memory, say too much, crash, wait for ever, or say where this runs, in the name of a language."""
        voices: tuple[str, ...] = ()
        match Path(spec.path).name:
            case "memory":
                voices = tuple(str(number) for number in range(10**9))
            case "words":
                voices = ("x" * 100,) * 100_000
            case "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "wait":
                fifo = Path(f"{spec.path}.begun")
                if fifo.exists():
                    fifo.open("w").close()  # its reader knows then that this has begun
                signal.pause()
        return Capability(frozenset(Task), frozenset(Mode), 16_000, 0, voices=voices, languages=(str(os.getpid()),))

    def load(self, spec: ModelSpec) -> object:
        """It is only inspected."""
        raise InvariantError("this engine is not for loading")
