"""The server's end of the line to a process: messages and audio over one socket, on the event loop."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, cast

from antiphon.runtime.wire.coding import Decoder, Message, encoded
from antiphon.runtime.wire.frames import Buffers, batches_of
from antiphon.runtime.wire.parcels import Inbox, Parcel
from antiphon.vocabulary.audio import Pcm

Told = TypeVar("Told")

log = logging.getLogger(__name__)


class Channel(asyncio.BufferedProtocol, Generic[Told]):
    """Calls `receive` with each message that arrives, and `lost` once when nothing more can.

    Messages are written at once; large audio goes out piece by piece, in turn with that of other calls, whenever the
    socket takes more.
    """

    def __init__(
        self, decoder: Decoder[Told], receive: Callable[[int, Told, Parcel], None], lost: Callable[[], None]
    ) -> None:
        self._decoder = decoder
        self._receive = receive
        self._lost = lost
        self._inbox = Inbox()
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._waiting: dict[int, deque[Iterator[Buffers]]] = {}

    def send(self, call: int, message: Message, sounds: Sequence[Pcm] = ()) -> None:
        """Send a message of a call, after all earlier ones of it; on a line that is closed it goes nowhere."""
        batches = batches_of(call, encoded(message), sounds)
        if call in self._waiting:
            self._waiting[call].append(batches)
        elif sounds:
            self._waiting[call] = deque([batches])
            self._send_waiting()
        else:
            for batch in batches:
                self._write(batch)

    def abort(self) -> None:
        """Close the line at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End, whoever closed."""
        del exc
        self._transport = None
        self._waiting.clear()
        self._inbox.close()
        self._lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        del sizehint
        return self._inbox.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has arrived; a process that talks nonsense is not listened to any further."""
        try:
            for call, message, parcel in self._inbox.deliveries(nbytes):
                self._receive(call, self._decoder.decode(message), parcel)
        except ValueError:
            log.exception("the line is closed: what came is no message")
            self.abort()

    def pause_writing(self) -> None:
        """Let audio wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on with it."""
        self._full = False
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and not self._full:
            call, messages = next(iter(self._waiting.items()))
            del self._waiting[call]
            batch = next(messages[0], None)
            if batch is None:
                messages.popleft()
            else:
                self._write(batch)
            if messages:
                self._waiting[call] = messages  # at the end: it is the next one's turn

    def _write(self, buffers: Buffers) -> None:
        if self._transport is not None:
            self._transport.writelines(buffers)
