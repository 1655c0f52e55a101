"""A process of ours on the other end of a socket: started, spoken to, killed and buried. It knows no engine."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.wire.channel import Channel
from antiphon.runtime.wire.chatter import Chatter
from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.faults import Failed, error_of
from antiphon.runtime.wire.parcels import Parcel
from antiphon.runtime.wire.signals import Cancel
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import WorkerDied
from antiphon.vocabulary.tasks import Cancellation

Told = TypeVar("Told")
Told_contra = TypeVar("Told_contra", contravariant=True)

_LAST_WORDS_S = 1.0
"""How long the output of a dead process is waited for: one that it started may still hold the pipe."""


class Listener(Protocol[Told_contra]):
    """Whoever waits for the answers to one call."""

    def hear(self, answer: Told_contra, parcel: Parcel) -> None: ...
    def lose(self, death: str) -> None:
        """There will be no more answers: the process has ended, as the words say."""
        ...


class WorkerProcess(Generic[Told]):
    """One child process, whose answers are read by `decoder`; `Failed` must be among them.

    `module` is run as `python -m module FD PARENT ...`: the socket to speak over, the process to die with, and further
    `descriptors` that it gets. `on_death` is told once that it ended without `end`, when every call under way has heard
    of it. Start it on the main thread's loop: the kernel ends it with the thread that started it.
    """

    def __init__(
        self,
        name: str,
        module: str,
        decoder: Decoder[Told],
        on_death: Callable[[], None],
        descriptors: Sequence[int] = (),
    ) -> None:
        self._name = name
        self._module = module
        self._on_death = on_death
        self._descriptors = descriptors
        self._channel = Channel(decoder, self._hear, self._silent)
        self._listeners: dict[int, Listener[Told]] = {}
        self._calls = 0
        self._process: asyncio.subprocess.Process | None = None
        self._burial: asyncio.Task[None] | None = None
        self._silence = asyncio.Event()
        self._ending = False
        self.death: str | None = None
        """How it ended, in words, once it has."""

    @property
    def pid(self) -> int | None:
        """Its number; None before it has started and once it has ended."""
        return None if self._process is None or self.death is not None else self._process.pid

    async def start(self) -> None:
        """Start the process. Raises OSError where there is none to be had, and then leaves nothing."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        heard, printed = os.pipe()
        chatter = Chatter(self._name)
        try:
            with theirs:
                self._process = await _spawn(self._module, theirs, printed, self._descriptors)
        except BaseException:
            ours.close()
            os.close(heard)
            raise
        finally:
            os.close(printed)
        pipe, _ = await loop.connect_read_pipe(lambda: chatter, os.fdopen(heard, "rb", 0))
        await loop.create_unix_connection(lambda: self._channel, sock=ours)
        self._burial = asyncio.ensure_future(self._bury(self._process, chatter, pipe))

    def tell(self, message: Message) -> None:
        """Say something that has no answer."""
        self._channel.send(0, message)

    async def ask(
        self, order: Message, sounds: Sequence[Pcm] = (), cancellations: Sequence[Cancellation] = ()
    ) -> tuple[Told, Parcel]:
        """Have an order carried out and await its one answer; raises the error that is the answer, or WorkerDied."""
        question: _Question[Told] = _Question()
        call = self.open(question)
        try:
            self.send(call, order, sounds)
            with closing(self.following(call, cancellations)):
                return await question.answer
        finally:
            self.close(call)

    def open(self, listener: Listener[Told]) -> int:
        """Begin a call, which gets a number. Raises WorkerDied."""
        if self._burial is None or self.death is not None:
            raise worker_died(self.death or "it was not started")
        self._calls = (self._calls + 1) % 2**32
        self._listeners[self._calls] = listener
        return self._calls

    def close(self, call: int) -> None:
        """End a call; what is still answered to it is dropped."""
        self._listeners.pop(call, None)

    def send(self, call: int, message: Message, sounds: Sequence[Pcm] = ()) -> None:
        """Say something about an open call; nothing is said about one that is closed."""
        if call in self._listeners:
            self._channel.send(call, message, sounds)

    def following(self, call: int, cancellations: Sequence[Cancellation]) -> "Following":
        """Let the process know of each of these when it happens; the call's order goes before."""
        followers = [partial(self.send, call, Cancel(index)) for index in range(len(cancellations))]
        return Following(cancellations, followers)

    def kill(self) -> None:
        """End it now, and every process that it has started and not let go of."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it leads a group of its own

    async def end(self) -> None:
        """Let it go, and wait until it is gone; what is under way is dropped."""
        self._ending = True
        self._channel.abort()
        if self._burial is not None:
            await asyncio.shield(self._burial)

    async def resident_bytes(self) -> int | None:
        """Its proportional set size, in bytes; None where there is no process, or the kernel does not tell."""
        if self.pid is None:
            return None
        crew = Crew(f"{self._name}-meter")  # the kernel walks all of its pages meanwhile
        try:
            return await crew.call(_pss_bytes, self.pid)
        finally:
            crew.stop()

    def _hear(self, call: int, answer: Told, parcel: Parcel) -> None:
        listener = self._listeners.get(call)
        if listener is None:
            parcel.close()
        else:
            listener.hear(answer, parcel)

    def _silent(self) -> None:
        self._silence.set()

    async def _bury(self, process: asyncio.subprocess.Process, chatter: Chatter, pipe: asyncio.BaseTransport) -> None:
        """Wait for its end, which its silence announces or makes necessary, and tell those who wait for it."""
        exited = asyncio.ensure_future(process.wait())
        silent = asyncio.ensure_future(self._silence.wait())
        await asyncio.wait([exited, silent], return_when=asyncio.FIRST_COMPLETED)
        if not self._ending:
            self.kill()  # one that does not listen is of no use any more
        self.death = _in_words(await exited)
        silent.cancel()
        self._channel.abort()
        listeners = tuple(self._listeners.values())
        self._listeners.clear()
        for listener in listeners:
            listener.lose(self.death)
        if not self._ending:
            self._on_death()
        await asyncio.wait([chatter.ended], timeout=_LAST_WORDS_S)
        pipe.close()


class Following:
    """Cancellations that are followed until this is closed."""

    def __init__(self, cancellations: Sequence[Cancellation], followers: Sequence[Callable[[], None]]) -> None:
        self._pairs = tuple(zip(cancellations, followers, strict=True))
        for cancellation, follower in self._pairs:
            cancellation.follow(follower)

    def close(self) -> None:
        """Follow no more; harmless when done twice."""
        for cancellation, follower in self._pairs:
            cancellation.unfollow(follower)
        self._pairs = ()


class _Question(Generic[Told]):
    """A call with one answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[Told, Parcel]] = asyncio.get_running_loop().create_future()

    def hear(self, answer: Told, parcel: Parcel) -> None:
        if self.answer.done():
            parcel.close()
        elif isinstance(answer, Failed):
            self.answer.set_exception(error_of(answer))
        else:
            self.answer.set_result((answer, parcel))

    def lose(self, death: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(worker_died(death))


def worker_died(death: str) -> WorkerDied:
    """What those are told who wait for a process that has ended."""
    return WorkerDied(f"the model's worker process has ended: {death}")


async def _spawn(
    module: str, theirs: socket.socket, printed: int, descriptors: Sequence[int]
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-u",
        "-P",  # the working folder is no place to import from, unless it is one for the server
        "-m",
        module,
        str(theirs.fileno()),
        str(os.getpid()),
        *map(str, descriptors),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        pass_fds=(theirs.fileno(), *descriptors),
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _in_words(returncode: int) -> str:
    if returncode >= 0:
        return f"it exited with code {returncode}"
    with suppress(ValueError):
        return f"it was killed by signal {-returncode} ({signal.Signals(-returncode).name})"
    return f"it was killed by signal {-returncode}"


def _pss_bytes(pid: int) -> int | None:
    """Source: Linux, Documentation/filesystems/proc.rst, smaps_rollup."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes_kb = (line.split()[1] for line in lines if line.startswith("Pss:"))
    return next((int(size_kb) * 1024 for size_kb in sizes_kb), None)
