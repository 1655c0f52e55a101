"""The engine's side of a controlled checkpoint: it reads the steering files and obeys them, and knows no task.

A file is named STEP.BEHAVIOUR, or STEP.BEHAVIOUR.TEXT for the request with that text alone. Every file is read when its
step comes, so a test may write and remove them at any time.
"""

import builtins
import ctypes
import os
import signal
import threading
import time
from pathlib import Path

from antiphon.testing.events import append_event
from antiphon.vocabulary import errors
from antiphon.vocabulary.tasks import TaskRequest

POLL_S = 0.005
"""How often a held step looks whether its file is gone. Units: seconds."""
DEFAULT_MS = 100
"""What an empty `ms`, `spin` or `gil` file stands for. Units: milliseconds."""


class Steering:
    """The steering files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str, text: str | None = None) -> str | None:
        """The stripped content of the file `name`, or else of `name.text`; None when there is neither."""
        present = {entry.name for entry in self.folder.iterdir()}  # a text need not be fit for a file's name
        for candidate in (name, f"{name}.{text}"):
            if candidate in present:
                try:
                    return (self.folder / candidate).read_text().strip()
                except FileNotFoundError:
                    continue  # removed since the listing
        return None

    def announce(self, step: str, revision: str, session: str | None, request: TaskRequest | None) -> None:
        """Write the step into `events.jsonl`."""
        append_event(self.folder, step, revision, session=session, request=request)

    def obey(self, step: str, request: TaskRequest | None = None, nth: int | None = None) -> None:
        """Do to this step what the files say: hold, ms, spin, gil, hang, crash, fail, in this order.

        `nth` counts repeated steps from 1; a number in a `fail` file picks one. Raises what the `fail` file names.
        """
        text = request.text if request else None
        while self._is_held(step, text) and not self.abandoned(request):
            time.sleep(POLL_S)
        self._spend(step, request)
        if self.read(f"{step}.hang", text) is not None:
            threading.Event().wait()
        if (how := self.read(f"{step}.crash", text)) is not None:
            _crash(how)
        if (what := self.read(f"{step}.fail", text)) is not None:
            _fail(step, what, nth)

    def abandoned(self, request: TaskRequest | None) -> bool:
        """Whether the request was cancelled and `run.cancellable` says to heed that."""
        return request is not None and request.cancelled() and self.read("run.cancellable") is not None

    def _is_held(self, step: str, text: str | None) -> bool:
        """Look for everyone's hold first: one that is narrowed to a text before it is released lets nobody through."""
        return self.read(f"{step}.hold") is not None or self.read(f"{step}.hold", text) is not None

    def take_ticket(self) -> int:
        """The next number from 1, unique among the processes that ever used this folder."""
        tally = os.open(self.folder / "sessions.tally", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(tally, b".")
            return os.lseek(tally, 0, os.SEEK_CUR)  # the end of our own byte, whoever else appends
        finally:
            os.close(tally)

    def _spend(self, step: str, request: TaskRequest | None) -> None:
        """Take time as the files say: asleep, in Python code, in C code that keeps the GIL."""
        text = request.text if request else None
        if (ms := self.read(f"{step}.ms", text)) is not None:
            end = time.monotonic() + _milliseconds(ms)
            while (left := end - time.monotonic()) > 0 and not self.abandoned(request):
                time.sleep(min(left, POLL_S))
        if (ms := self.read(f"{step}.spin", text)) is not None:
            heeds = self.read("run.cancellable") is not None  # asked once: reading a file lets go of the GIL
            end = time.monotonic() + _milliseconds(ms)
            while time.monotonic() < end and not (heeds and request is not None and request.cancelled()):
                pass
        if (ms := self.read(f"{step}.gil", text)) is not None:
            ctypes.PyDLL(None).usleep(round(_milliseconds(ms) * 1e6))  # a PyDLL call, unlike a CDLL one, keeps the GIL


def _milliseconds(text: str) -> float:
    """A file's text as seconds."""
    return int(text or DEFAULT_MS) / 1000


def _crash(how: str) -> None:
    """End the process at once: a number is its exit status, else a signal's name, by default SIGKILL."""
    if how.isdigit():
        os._exit(int(how))
    os.kill(os.getpid(), signal.Signals[how or "SIGKILL"])
    threading.Event().wait()  # a signal to the own process may arrive a moment later


def _fail(step: str, what: str, nth: int | None) -> None:
    """Raise the named exception, by default a RuntimeError; a number picks which of repeated steps."""
    words = what.split()
    numbers = [int(word) for word in words if word.isdigit()]
    if numbers and nth not in numbers:
        return
    name = next((word for word in words if not word.isdigit()), "RuntimeError")
    raise _exception_class(name)(f"{step} fails as its file says")


def _exception_class(name: str) -> type[BaseException]:
    """A domain error or a builtin one; an unknown name raises LookupError."""
    kind = vars(errors).get(name) or vars(builtins).get(name)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return kind
    raise LookupError(f"no exception class is called {name}")
