"""Asks adapters what models can do, in processes of their own: the files of a model may hold anything.

An adapter that hangs on them, or takes all memory for them, costs its process. Nothing of the server waits for it but
the request that asked, and that no longer than `LIMIT_S`.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from antiphon.ports.clock import Clock, Timer
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.hosts.messages import Inspected, Spec
from antiphon.runtime.hosts.translation import spec_told
from antiphon.runtime.wire.coding import Decoder, Message, encoded
from antiphon.runtime.wire.faults import Failed, error_of
from antiphon.vocabulary.errors import ConfigError, ServerBusy, ShuttingDown
from antiphon.vocabulary.spec import Capability, ModelSpec

WORKER = "antiphon.worker.inspection"
"""The module that the process runs; the server never imports it."""

LIMIT_S = 30.0
"""How long one inspection may take. It reads a few small files: on a slow disk that takes seconds."""

MAX_ADDRESS_BYTES = 1024**3
"""All that the process may map. Python and an adapter map less than 100 MiB, and the files it reads as text, with
their values in memory, several hundred at most."""

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""The longest description of a model: 10,000 voices with long names fit."""

MAX_AT_ONCE = 4
"""How many models a server inspects at once; the next ones wait, 30 s at most for each before them."""

IDLE_S = 10.0
"""How long a process waits for the next model. Starting one takes a tenth of a second of CPU."""

_LENGTH_BYTES = 4
_END_S = 5.0
"""A killed process ends at once, unless the kernel cannot let go of a disk."""


class Look(Message):
    """Say what the model can do; the adapter is named as "module:Class"."""

    adapter: str
    spec: Spec


def look_decoder() -> Decoder[Look]:
    """Reads what the process is asked."""
    return Decoder(Look)


class Inspector:
    """One process, which inspects one model at a time. Its calls block; `kill` may come from any thread.

    `target` finds a family's adapter as "module:Class". The process starts when it is first needed. The kernel ends it
    with the thread that started it. Use it in a `with` block, or close it.
    """

    def __init__(self, target: Callable[[str], str], limit_s: float = LIMIT_S) -> None:
        self._target = target
        self._limit_s = limit_s
        self._decoder: Decoder[Inspected | Failed] = Decoder(Inspected | Failed)
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def inspect(self, spec: ModelSpec) -> Capability:
        """Say what the model can do.

        Raises what the adapter raises, ConfigError for a model that cannot be inspected within the limits (param
        "path") or has an unknown family (param "family"), and ServerBusy if no process is to be had.
        """
        try:
            adapter = self._target(spec.family)
        except ConfigError as error:
            raise ConfigError(error.message, param="family") from error
        answer = self._answer(Look(adapter, spec_told(spec)))
        if isinstance(answer, Failed):
            raise error_of(answer)
        return answer.capability

    @property
    def is_killed(self) -> bool:
        """Whether it was killed: then it inspects no more."""
        return self._killed

    def kill(self) -> None:
        """End the process now, and never start another: an inspection under way raises ShuttingDown."""
        self._killed = True
        self._end()

    def close(self) -> None:
        """End the process and wait until it is gone; the next inspection starts another."""
        self._end()
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._process = None

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()  # which does nothing to one that has ended

    def _answer(self, look: Look) -> Inspected | Failed:
        try:
            line = self._alive()
            order = encoded(look)
            line.sendall(len(order).to_bytes(_LENGTH_BYTES) + order)
            return self._decoder.decode(memoryview(_received(line)))
        except TimeoutError as error:
            self.close()
            raise ConfigError(
                f"the model's files could not be inspected within {self._limit_s:g} s", param="path"
            ) from error
        except (EOFError, ConnectionError, ValueError) as error:
            self.close()
            if self._killed:
                raise ShuttingDown from error
            raise ConfigError(
                f"the process that inspected the model's files has failed: {str(error) or 'it ended'}", param="path"
            ) from error

    def _alive(self) -> socket.socket:
        if self._killed:
            raise ShuttingDown
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it ended meanwhile, as when memory ran out: that is not the fault of this model
        if self._line is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = _started(theirs)
            self._line = ours
        self._line.settimeout(self._limit_s)
        return self._line


def _started(theirs: socket.socket) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 (the command is ours)
            [sys.executable, "-P", "-m", WORKER, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    except OSError as error:
        raise ServerBusy("there is no room for a process that inspects models") from error


def _received(line: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(line, _LENGTH_BYTES))
    if length > MAX_ANSWER_BYTES:
        raise ValueError(f"what it says of the model is longer than {MAX_ANSWER_BYTES} bytes")
    return _exactly(line, length)


def _exactly(line: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        piece = line.recv(length - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)


@dataclass(frozen=True, slots=True)
class _Station:
    """An inspector and the thread that calls it."""

    inspector: Inspector
    thread: Crew

    def close(self) -> None:
        self.inspector.close()
        self.thread.stop()


class Inspections:
    """Inspects models for a server that runs: several at once, in processes that are kept for a while."""

    def __init__(self, clock: Clock, target: Callable[[str], str]) -> None:
        self._clock = clock
        self._target = target
        self._room = asyncio.Semaphore(MAX_AT_ONCE)
        self._idle: list[_Station] = []
        self._busy: list[_Station] = []
        self._alarm: Timer | None = None
        self._killed = False

    async def inspect(self, spec: ModelSpec) -> Capability:
        """Say what the model can do; raises as `Inspector.inspect` does, and ShuttingDown once they were killed."""
        async with self._room:
            if self._killed:
                raise ShuttingDown
            station = self._idle.pop() if self._idle else _Station(Inspector(self._target), Crew("antiphon-inspector"))
            self._busy.append(station)
            try:
                return await station.thread.call(station.inspector.inspect, spec)
            except asyncio.CancelledError:
                station.inspector.kill()  # its thread still works for a caller who has gone, and ends after that
                station.thread.stop()
                raise
            finally:
                self._busy.remove(station)
                if not station.inspector.is_killed:
                    self._rest(station)

    def kill(self) -> None:
        """End every inspection now, and begin no other."""
        self._killed = True
        for station in (*self._busy, *self._idle):
            station.inspector.kill()

    def close(self) -> None:
        """End the processes that are idle; those that were killed have closed themselves."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._idle:
            self._idle.pop().close()

    def _rest(self, station: _Station) -> None:
        self._idle.append(station)
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._clock.call_at(self._clock.now() + IDLE_S, self.close)
