"""The worker's end of the line: one thread reads, any thread writes. It knows no message."""

import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
                with self._turns:
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
    """A lock that is handed to whoever has waited longest: a plain one may go to the same thread again and again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()  # until it is handed over

    def __exit__(self, *exc: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False
