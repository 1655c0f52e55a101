"""The worker's end of the line: one thread reads, any thread writes. It knows no message."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from antiphon.runtime.wire.coding import Decoder, Message, encoded
from antiphon.runtime.wire.frames import Buffers, batches_of
from antiphon.runtime.wire.parcels import Inbox, Parcel
from antiphon.vocabulary.audio import Pcm

Told = TypeVar("Told")


class Line(Generic[Told]):
    """Messages over a blocking socket; iterate it for those that arrive, until the server closes its end."""

    def __init__(self, connection: socket.socket, decoder: Decoder[Told]) -> None:
        self._socket = connection
        self._decoder = decoder
        self._turns = _Turns()

    def __iter__(self) -> Iterator[tuple[int, Told, Parcel]]:
        """Each message with its call and what came beside it. Raises ValueError for what is none."""
        inbox = Inbox()
        with suppress(ConnectionError):
            while count := self._socket.recv_into(inbox.room()):
                for call, message, parcel in inbox.deliveries(count):
                    yield call, self._decoder.decode(message), parcel

    def send(self, call: int, message: Message, sounds: Sequence[Pcm] = ()) -> None:
        """Send a message; large audio lets those of other calls pass between its pieces.

        When the server is gone it goes nowhere: whoever reads the line ends this process.
        """
        with suppress(ConnectionError):
            for batch in batches_of(call, encoded(message), sounds):
                with self._turns.mine():
                    self._write(batch)

    def _write(self, batch: Buffers) -> None:
        sent = self._socket.sendmsg(batch)
        for buffer in batch:
            if sent < len(buffer):
                self._socket.sendall(memoryview(buffer)[sent:])
                sent = 0
            else:
                sent -= len(buffer)


class _Turns:
    """A lock that is given to whoever has waited longest: a plain one may go to the same thread again and again."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._next = 0
        self._serving = 0

    @contextmanager
    def mine(self) -> Iterator[None]:
        with self._moved:
            turn = self._next
            self._next += 1
            while turn != self._serving:
                self._moved.wait()
        try:
            yield
        finally:
            with self._moved:
                self._serving += 1
                if self._serving != self._next:
                    self._moved.notify_all()
