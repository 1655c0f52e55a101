"""One connection: its events both ways, and how long its peer may take over what it owes. It knows no event's meaning.

A peer that leaves is noticed at once, whatever is being done for it. A half-closed connection counts as left: nothing
tells it from a closed one.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from wyoming.event import Event, async_write_event

from antiphon.http.server.progress import Progress
from antiphon.http.server.traffic import LINGER_S, STALL_S
from antiphon.listeners.wyoming.events import MAX_LINE_BYTES, read_event
from antiphon.ports.clock import Clock
from antiphon.ports.listener import PeerLimits, StopOrder
from antiphon.vocabulary.errors import RequestTimeout, ShuttingDown

_BLOCK_BYTES = 64 * 1024


class _Owed(Enum):
    """What the peer has to do before anything can go on; what it is sent it has to read besides."""

    NOTHING = auto()
    REQUEST = auto()  # begin one, or leave
    EVENT = auto()  # end the event that it began
    REST = auto()  # go on with what it requested
    FAREWELL = auto()  # read the error, and leave


@dataclass(frozen=True, slots=True)
class Terms:
    """What all peers of one listener share."""

    limits: PeerLimits
    stop: StopOrder
    clock: Clock


class Peer(asyncio.StreamReaderProtocol):
    """A connection from its beginning. `check` is called every now and then, and enforces the limits.

    `on_connected` is told once it is there, `on_left` when its peer has left, `on_closed` when it is gone.
    """

    def __init__(self, terms: Terms, on_connected: Callable[["Peer"], None]) -> None:
        super().__init__(asyncio.StreamReader(limit=MAX_LINE_BYTES), self._connected)
        self.on_left: Callable[[], object] = _nobody_listens
        self.on_closed: Callable[[], object] = _nobody_listens
        self._terms = terms
        self._now = terms.clock.now
        self._on_connected = on_connected
        self._owed = _Owed.NOTHING
        self._owed_since = 0.0
        self._waiting: asyncio.Timeout | None = None  # while an event is waited for; it has no time of its own
        self._heard_at = 0.0
        self._has_left = False

    @property
    def must_end(self) -> bool:
        """Whether no new request is taken any more."""
        return self._terms.stop.begun.is_set()

    async def next_event(self, *, in_request: bool) -> Event:
        """The next event: of a request that is under way, or one that may begin one.

        Raises what `read_event` raises, RequestTimeout for a peer that began something and does not go on, and
        ShuttingDown if it had begun something when the server began to stop.
        """
        self._owe(_Owed.REST if in_request else _Owed.REQUEST)
        await asyncio.sleep(0)  # many tiny events may be there already, and nothing else would let the loop go on
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting = waiting
                return await read_event(self._reader, self._event_begun)
        except TimeoutError:
            if not waiting.expired():
                raise
            raise ShuttingDown from None
        finally:
            self._waiting = None
            self._owe(_Owed.NOTHING)

    async def send(self, event: Event) -> None:
        """Send an event; returns once most of what was sent is on its way, raises ConnectionError if it cannot be."""
        if self._writer.is_closing():
            raise ConnectionResetError
        await async_write_event(event, self._writer)

    async def part(self, event: Event) -> None:
        """Send the last event, and drop what the peer still sends, for a while: so it can read that event."""
        with suppress(RequestTimeout):  # why it is sent; a reader's fault is raised wherever the writer waits, too
            await self.send(event)
        self._writer.write_eof()
        self._owe(_Owed.FAREWELL)
        with suppress(RequestTimeout):  # it has stopped to send already
            while await self._reader.read(_BLOCK_BYTES):
                pass

    def close(self) -> None:
        """Close it once what was sent is taken."""
        self._writer.close()

    def abort(self) -> None:
        """Cut it off."""
        self._writer.transport.abort()

    def check(self, now: float) -> None:
        """Let go of a peer that has stood still for too long."""
        stops, limits = self._terms.stop.begun.is_set(), self._terms.limits
        if _is_over(now - self._progress.stands_since(now), STALL_S if stops else limits.send_timeout_s):
            self.abort()
            return
        silent_s, owing_s = now - max(self._heard_at, self._owed_since), now - self._owed_since
        match self._owed:
            case _Owed.REQUEST if stops or _is_over(owing_s, limits.keep_alive_s):
                self.close()
            case _Owed.FAREWELL if owing_s >= (STALL_S if stops else LINGER_S):
                self.abort()
            case _Owed.EVENT | _Owed.REST if stops:
                # What has not come can only be refused, and bytes that trickle would hold the stop up. The reader is
                # left in order, so that what the peer still sends can be dropped while it sees the refusal.
                self._give_up_waiting()
            case _Owed.EVENT if _is_over(owing_s, limits.header_timeout_s):
                self._reader.set_exception(RequestTimeout("the event did not arrive in time"))
            case _Owed.REST if _is_over(silent_s, limits.body_timeout_s):
                self._reader.set_exception(RequestTimeout("the request stopped arriving"))
            case _:
                pass

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's is one
        """Begin to look at what the peer takes."""
        self._heard_at = self._now()
        self._progress = Progress(transport, self._heard_at)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take what the peer sent."""
        self._heard_at = self._now()
        super().data_received(data)

    def eof_received(self) -> bool:
        """Notice that the peer has left; the transport closes itself."""
        super().eof_received()
        self._leave()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        super().connection_lost(exc)
        self._leave()
        self.on_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._on_connected(self)

    def _event_begun(self) -> None:
        if self._owed is _Owed.REQUEST:
            self._owe(_Owed.EVENT)

    def _owe(self, owed: _Owed) -> None:
        self._owed = owed
        self._owed_since = self._now()

    def _give_up_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())
            self._waiting = None

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self.on_left()


def _is_over(elapsed_s: float, limit_s: float) -> bool:
    """Whether a limit is reached, 0 being none."""
    return 0 < limit_s <= elapsed_s


def _nobody_listens() -> None:
    """What is told before anybody wants to know."""
