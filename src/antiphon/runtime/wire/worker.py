"""A process of ours on the other end of a socket: started, spoken to, killed and buried. It knows no engine."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from contextvars import Context
from functools import partial
from typing import Generic, TypeVar

from antiphon.runtime.wire.calls import Following, Listener, Question, worker_died
from antiphon.runtime.wire.channel import Channel
from antiphon.runtime.wire.chatter import Chatter
from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.parcels import Parcel
from antiphon.runtime.wire.signals import Cancel
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.tasks import Cancellation

Told = TypeVar("Told")

_KILLED_BEFORE = "it was killed before it had started"
_LAST_WORDS_S = 1.0
"""How long the output of a dead process is waited for: one that it started may still hold the pipe."""


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
        self._killed = asyncio.Event()
        self.death: str | None = None
        """How it ended, in words, once it has."""

    @property
    def pid(self) -> int | None:
        """Its number; None before it has started and once it has ended."""
        return None if self._process is None or self.death is not None else self._process.pid

    async def start(self) -> None:
        """Start the process. Raises OSError where there is none to be had, and then leaves nothing.

        Where it was killed before, it raises WorkerDied.
        """
        if self._killed.is_set():
            raise worker_died(_KILLED_BEFORE)
        # In a context of its own: what it prints later, and how it ends, is not of the request that it is started for.
        await asyncio.get_running_loop().create_task(self._start(), context=Context())

    def tell(self, message: Message) -> None:
        """Say something that has no answer."""
        self._channel.send(0, message)

    async def ask(
        self, order: Message, sounds: Sequence[Pcm] = (), cancellations: Sequence[Cancellation] = ()
    ) -> tuple[Told, Parcel]:
        """Have an order carried out and await its one answer; raises the error that is the answer, or WorkerDied."""
        question: Question[Told] = Question()
        call = self.open(question)
        try:
            self.send(call, order, sounds)
            del sounds  # what is sent need not be kept until the answer
            with closing(self.following(call, cancellations)):
                return await question.answer
        finally:
            self.close(call)
            del question  # the error that it holds must not refer to itself through this frame

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

    def following(self, call: int, cancellations: Sequence[Cancellation]) -> Following:
        """Let the process know of each of these when it happens; the call's order goes before."""
        followers = [partial(self.send, call, Cancel(index)) for index in range(len(cancellations))]
        return Following(cancellations, followers)

    def kill(self) -> None:
        """End it now, also if it only starts now, and every process that it has started and not let go of."""
        self._killed.set()
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it leads a group of its own

    async def end(self) -> None:
        """Let it go, and wait until it is gone; what is under way is dropped."""
        self._ending = True
        self._channel.abort()
        if self._burial is not None:
            await asyncio.shield(self._burial)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        with ExitStack() as theirs, ExitStack() as ours:
            our_end, their_end = socket.socketpair()
            ours.enter_context(our_end)
            theirs.enter_context(their_end)
            heard, printed = os.pipe()
            theirs.callback(os.close, printed)
            chatter = Chatter(self._name)
            pipe, _ = await loop.connect_read_pipe(lambda: chatter, os.fdopen(heard, "rb", 0))
            ours.callback(pipe.close)
            await loop.create_unix_connection(lambda: self._channel, sock=our_end)
            ours.callback(self._channel.abort)
            self._process = await _spawn(self._module, their_end, printed, self._descriptors)
            ours.pop_all()
        self._burial = asyncio.ensure_future(self._bury(self._process, chatter, pipe))
        if self._killed.is_set():
            self.kill()

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
