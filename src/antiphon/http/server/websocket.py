"""One WebSocket's connection: its frames, and how long its peer may take. It knows no route, and no message's meaning.

The frames are read and written by the `websockets` library's sans-IO protocol, which refuses a message over the limit
before it is read; wsproto, the other choice, leaves that to its user. Uvicorn's class over it is not used: it answers
refusals as plain text, and pings without end of a peer that reads nothing, and has timers that no clock of ours moves.
"""

import asyncio

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side

from antiphon.http.server.dialogue import Dialogue
from antiphon.http.server.handshake import Upgrade
from antiphon.http.server.progress import Progress
from antiphon.http.server.refusals import Fields, head, last_answer
from antiphon.http.server.traffic import LINGER_S, STALL_S, Traffic

PING_S = 20.0
"""After how long without a word of ours a ping is sent, in seconds: proxies give up on lines that lie still."""

_PIECE_BYTES = 1024
"""How much is read of what has arrived before it is asked whether that is enough: 170 frames at most."""

_TURN_FRAMES = 200
"""About how many frames are read in one turn, which takes 5 ms: empty ones, such as pings, fill no limit of bytes."""

_TURN_BYTES = 64 * 1024
"""How much is read in one turn."""

_ENOUGH_BYTES = 64 * 1024
"""How much the application may have before it; from there on nothing more is read."""

_MESSAGE_BYTES = 256
"""What a message takes besides its content, as far as the line above goes."""


class WebSocketConnection(asyncio.Protocol):
    """One peer, from its upgrade on; `check` and the like are called as those of a `Connection` are.

    `early` is what came behind the head; `is_writable` is false where the transport has asked to pause writing and not
    to go on yet.
    """

    def __init__(
        self, traffic: Traffic, transport: asyncio.Transport, upgrade: Upgrade, early: bytes, *, is_writable: bool
    ) -> None:
        self.transport = transport
        self._traffic = traffic
        self._limits = traffic.limits
        self._now = traffic.clock.now
        self._upgrade = upgrade
        self._frames: Protocol | None = None  # until the application has accepted
        self._unread = bytearray(early)
        self._message = bytearray()  # the part that has come of one in several frames
        self._is_text = False
        self._taken_bytes = 0  # of messages that the application has before it
        self._writable = asyncio.Event()
        if is_writable:  # what is buffered says nothing: a transport that never paused never says that it goes on
            self._writable.set()
        self._heard_at = self._said_at = self._now()
        self._pinged_at: float | None = None
        self._parted_at: float | None = None
        self._progress = Progress(transport, self._heard_at)
        self._reads = True
        self._waits_for_turn = False
        self._adjust_reading()
        self._dialogue = Dialogue(self, traffic.stop.begun)
        traffic.state.connections.add(self)  # type: ignore[arg-type]  # uvicorn names its own classes
        task = asyncio.get_running_loop().create_task(self._dialogue.run(traffic.app, upgrade.scope))
        traffic.state.tasks.add(task)
        task.add_done_callback(traffic.state.tasks.discard)

    # asyncio's side

    def data_received(self, data: bytes) -> None:
        """Read frames; what comes after the end is dropped."""
        self._heard_at = self._now()
        if self._frames is not None and not self._frames.eof_sent:
            self._unread += data
            self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application, if it does not know."""
        del exc
        self._traffic.state.connections.discard(self)
        self._dialogue.leave(CloseCode.ABNORMAL_CLOSURE)
        self._writable.set()

    def pause_writing(self) -> None:
        """The peer takes nothing, so nothing is taken from it: what it pings would be answered without end."""
        self._writable.clear()
        self._adjust_reading()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()
        self._adjust_reading()

    # the application's side

    async def writable(self) -> None:
        """As `Line` has it."""
        await self._writable.wait()

    def accept(self, fields: Fields) -> None:
        """Open it, and read what was sent before it was open."""
        agreed = [*self._traffic.state.default_headers, *self._upgrade.accepted(), *fields]
        self._write(head(STATUS_LINE[101], agreed))
        self._frames = Protocol(Side.SERVER, max_size=self._limits.max_message_bytes or None)
        self._read()

    def refuse(self, response: Response) -> None:
        """Answer as HTTP does; it never was a WebSocket."""
        self._write(last_answer(response, self._traffic.state.default_headers))
        self._linger()

    def say(self, message: str | bytes) -> None:
        """Send one message."""
        assert self._frames is not None
        if isinstance(message, str):
            self._frames.send_text(message.encode("utf-8", "backslashreplace"))
        else:
            self._frames.send_binary(message)
        self._flush()

    def close(self, code: int, reason: str) -> None:
        """Say so, and wait a little for the peer to say so, too."""
        assert self._frames is not None
        self._frames.send_close(code, reason)
        self._parted_at = self._now()
        self._flush()
        self.listen()

    def listen(self) -> None:
        """Read on."""
        self._taken_bytes = 0
        if self._frames is not None and self._unread:
            self._read()
        self._adjust_reading()

    # the listener's side

    def begin_stop(self) -> None:
        """The application is told by the order itself; what the peer does not take counts from now."""
        self._progress.restart(self._now())

    def end(self) -> None:
        """Its application has returned: it was closed then, and its peer has until `check` says so."""

    def check(self, now: float) -> None:
        """Let go of a peer that takes nothing, does not answer, or has left unnoticed; ping one that hears nothing."""
        stops = self._traffic.stop.begun.is_set()
        send_limit_s = STALL_S if stops else self._limits.send_timeout_s
        if 0 < send_limit_s <= now - self._progress.stands_since(now, is_closing=self.transport.is_closing()):
            self.abort()
        elif self._parted_at is not None:
            if now - self._parted_at >= (STALL_S if stops else LINGER_S):
                self.abort()
        elif not self._reads and not self._waits_for_turn:
            self._pinged_at = None  # it may have answered; nobody has looked
            if self._progress.peer_has_closed():
                self.abort()
        elif self._pinged_at is not None and self._heard_at < self._pinged_at:
            if 0 < self._limits.send_timeout_s <= now - self._pinged_at:
                self.abort()
        elif now - self._said_at >= PING_S and self._frames is not None:
            self._pinged_at = now
            self._frames.send_ping(b"")
            self._flush()

    def abort(self) -> None:
        """Detach: the connection is gone at once, with whatever was not sent."""
        self._dialogue.leave(CloseCode.ABNORMAL_CLOSURE)
        self.transport.abort()

    def _read(self) -> None:
        """Read what has arrived, for one turn, and for as long as the application has not enough."""
        assert self._frames is not None
        if self._waits_for_turn:
            return
        frames = read_bytes = 0
        while self._has_use_for_more and frames < _TURN_FRAMES and read_bytes < _TURN_BYTES:
            piece = bytes(self._unread[:_PIECE_BYTES])
            del self._unread[:_PIECE_BYTES]
            read_bytes += len(piece)
            self._frames.receive_data(piece)
            for frame in self._frames.events_received():
                frames += 1
                if isinstance(frame, Frame):  # nothing else comes once it is open
                    self._take(frame)
        self._flush()
        if self._frames.eof_sent:
            self._over(self._frames)
        elif self._has_use_for_more:
            self._waits_for_turn = True
            self._traffic.turns.queue(self._take_turn)
        self._adjust_reading()

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        self._read()

    @property
    def _has_use_for_more(self) -> bool:
        assert self._frames is not None
        return bool(self._unread) and self._taken_bytes < _ENOUGH_BYTES and not self._frames.eof_sent

    def _take(self, frame: Frame) -> None:
        assert self._frames is not None
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._message += frame.data
        if not frame.fin:
            return
        data = bytes(self._message)
        self._message.clear()
        if self._parted_at is None:
            self._taken_bytes += len(data) + _MESSAGE_BYTES
        if not self._is_text:
            self._dialogue.hear(data)
            return
        try:
            self._dialogue.hear(data.decode())
        except UnicodeDecodeError:
            self._frames.fail(CloseCode.INVALID_DATA, "a text must be UTF-8")

    def _over(self, frames: Protocol) -> None:
        """The peer has closed, or has broken the rules."""
        self._unread.clear()
        if frames.close_rcvd is not None and frames.parser_exc is None:
            self._dialogue.leave(frames.close_rcvd.code, frames.close_rcvd.reason)
            self.transport.close()
            return
        said = frames.close_sent
        self._dialogue.leave(*(CloseCode.ABNORMAL_CLOSURE, "") if said is None else (said.code, said.reason))
        if not self.transport.is_closing():  # what was written last may have found that the peer is gone
            self._linger()

    def _linger(self) -> None:
        """All is said: read no more than it takes for the peer to see it, although it still sends."""
        self._parted_at = self._now()
        self._adjust_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _flush(self) -> None:
        assert self._frames is not None
        self._write(b"".join(self._frames.data_to_send()))

    def _write(self, data: bytes) -> None:
        if data and not self.transport.is_closing():  # uvloop would raise where asyncio drops what is written
            self._said_at = self._now()
            self.transport.write(data)

    def _adjust_reading(self) -> None:
        """Read while there is a use for it: an open WebSocket and room for its messages, or a peer to be waited for."""
        has_room = self._frames is not None and self._taken_bytes < _ENOUGH_BYTES and self._writable.is_set()
        reads = (has_room or self._parted_at is not None) and not self._waits_for_turn
        if reads == self._reads or self.transport.is_closing():
            return
        self._reads = reads
        if reads:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()
