"""One connection: uvicorn's HTTP/1.1, and how long its peer may take over what it owes. It knows no route.

A peer that takes too long has its transport aborted, not closed: closing waits for the peer to read what is buffered.
An abort only detaches: the request's work is told that its client has left, and ends by its own rules.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from antiphon.http.envelope import error_response, reason_of
from antiphon.http.ledger import REQUEST_ID
from antiphon.http.server.exchange import Exchange
from antiphon.http.server.flow import PipelineFlow
from antiphon.http.server.handshake import Upgrade
from antiphon.http.server.pace import Pace
from antiphon.http.server.progress import Progress
from antiphon.http.server.refusals import last_answer
from antiphon.http.server.traffic import LINGER_S, STALL_S, Traffic
from antiphon.http.server.websocket import WebSocketConnection
from antiphon.vocabulary.errors import (
    AntiphonError,
    InvalidRequest,
    RequestTimeout,
    ServerBusy,
    ShuttingDown,
    TooLarge,
)

MAX_HEAD_BYTES = 64 * 1024
"""The most that a request's headers may take, or what comes between two pieces of a body; uvicorn has no limit."""

_SLICE_BYTES = 1024
"""How much is parsed at once, unless it is known to be all body. A read has up to 256 KiB: thousands of tiny requests.

Parsing stops once a request waits behind another one. So no more of them are held than fit into a slice, about 50.
"""

_TURN_SLICES = 16
"""How many slices are parsed in one turn. The worst of them, with a chunk for every byte, takes half a millisecond."""

MAX_SURPLUS = 64
"""Connections over the limit that are told so at one time; those beyond are just dropped."""


class _Owed(Enum):
    """What the peer has to send before anything can go on."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class Connection(HttpToolsProtocol):
    """One peer. `check` is called every now and then and enforces the limits: there is no timer for each connection."""

    def __init__(self, traffic: Traffic) -> None:
        super().__init__(traffic.config, traffic.state, {})
        self._traffic = traffic
        self._limits = traffic.limits
        self._now = traffic.clock.now
        self._owed = _Owed.NOTHING
        self._unparsed = b""  # what was read and waits: for the request before it to be answered, or for its turn
        self._waits_for_turn = False
        self._body_left_bytes = 0  # of a body that has declared its length
        self._resumes_body = False  # whether the parser reads a head that we made
        self._unframed_bytes = 0  # of a head that has no end yet, or between two pieces of a body
        self._begun_at = 0.0  # when the peer began to owe this, or to owe nothing
        self._heard_at = 0.0
        self._pace = Pace(self._limits.min_body_bytes_per_s, self._limits.body_timeout_s)
        self._running: RequestResponseCycle | None = None
        self._exchange: Exchange | None = None
        self._stopped_at = 0.0
        self._is_refused = False  # because it came after the stop, perhaps before `begin_stop` was called
        self._parted_at: float | None = None

    @property
    def answers(self) -> bool:
        """Whether a request of this connection has no whole answer yet."""
        return self._running is not None and not self._running.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Greet the peer, or turn it away where there are too many."""
        super().connection_made(transport)
        self._traffic.handshakes.pop(self, None)  # it is one of the connections from here on
        self.flow = self._flow = PipelineFlow(transport)
        self._begun_at = self._heard_at = self._now()
        self._progress = Progress(transport, self._begun_at)
        surplus = self._traffic.open_connections - self._limits.max_connections
        if not self._limits.max_connections or surplus <= 0:
            return
        if surplus > MAX_SURPLUS:
            self.abort()
        else:
            self._part(ServerBusy("the server has too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that runs, which uvicorn forgets where a later one came after it in the pipeline."""
        super().connection_lost(exc)
        self.pipeline.clear()
        self._unparsed = b""
        if self._exchange is not None:
            self._exchange.detach()

    def data_received(self, data: bytes) -> None:
        """Parse what can be answered now; what a refused peer still sends is dropped."""
        self._heard_at = self._now()
        if self._parted_at is None:
            self._unparsed += data
            self._parse()

    def _parse(self) -> None:
        """Parse for one turn, or until a request waits behind the one that runs; no more is read while some is left."""
        if self._waits_for_turn:
            return
        unparsed, start, slices = self._unparsed, 0, 0
        self._unparsed = b""  # it may be parsed anew below, where a WebSocket takes over, or be dropped by a refusal
        while start < len(unparsed) and slices < _TURN_SLICES and not (self.pipeline or self._is_done):
            slices += 1
            end = start + max(_SLICE_BYTES, self._body_left_bytes)
            piece = unparsed[start:end]
            start = end
            try:
                self._feed(piece)
            except HttpParserUpgrade as end_of_head:
                rest = piece[end_of_head.args[0] :] + unparsed[start:]
                if self._should_upgrade():
                    self._upgrade(rest)
                    return
                self._ignore_upgrade()
                unparsed, start = rest, 0
        if self._is_done:
            return
        self._unparsed = unparsed[start:]
        if self.pipeline:
            self._flow.hold()
        elif self._unparsed:
            self._flow.hold()
            self._waits_for_turn = True
            self._traffic.turns.queue(self._take_turn)
        elif self._flow.is_held:
            self._flow.release()

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        self._parse()

    def _ignore_upgrade(self) -> None:
        """Go on with HTTP behind a request for another protocol, as RFC 9110 (7.8) allows: curl asks for h2c so.

        The parser has stopped at the end of the head, and takes even the request's own body for the other protocol. So
        a new one takes over, which is told by a head of its own how the body is framed.
        """
        self.parser = _new_parser(self)
        if framing := _framing_of(self.headers):
            self._resumes_body = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%s: %s\r\n\r\n" % framing)
            self._resumes_body = False

    def _feed(self, piece: bytes) -> None:
        """Have the parser take a piece; raises HttpParserUpgrade where another protocol begins in it."""
        self._unframed_bytes += len(piece)
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade:
            raise
        except HttpParserError:
            self._part(InvalidRequest("the request is not HTTP"))
        if self._owed is _Owed.NOTHING:
            self._unframed_bytes = 0
        elif self._unframed_bytes > MAX_HEAD_BYTES and self._parted_at is None:
            self._part(TooLarge(f"the head of the request is larger than {MAX_HEAD_BYTES} bytes"))

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._resumes_body:
            return
        super().on_message_begin()
        self._owe(_Owed.HEAD)

    def on_url(self, url: bytes) -> None:
        """A piece of its address."""
        if not self._resumes_body:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers."""
        if not self._resumes_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its headers are whole, and its answer begins."""
        if self._resumes_body:
            return
        super().on_headers_complete()
        self._unframed_bytes = 0
        self._body_left_bytes = _declared_bytes(self.headers)
        self._owe(_Owed.BODY)

    def on_chunk_header(self) -> None:
        """A chunk of its body begins."""
        if self._exchange is not None and self._receives_running:
            self._exchange.begin_chunk()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._unframed_bytes = 0
        self._body_left_bytes -= len(body)
        self._pace.count(len(body))
        super().on_body(body)
        if self._exchange is not None and self._receives_running:
            self._exchange.count(len(body))

    def on_message_complete(self) -> None:
        """It is whole, unless the parser has passed over its body."""
        if self.parser.should_upgrade() and not self._should_upgrade() and _framing_of(self.headers):
            return
        super().on_message_complete()
        self._body_left_bytes = 0
        self._owe(_Owed.NOTHING)

    def on_response_complete(self) -> None:
        """As uvicorn, but for its timer of idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()  # of this request's body nothing is kept any more
        if self._owed is not _Owed.BODY:
            self._begun_at = self._now()
        elif self._receives_running and self._exchange is not None and self._exchange.outlives_answer:
            self._linger()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self._parse()  # the body of the request that begins now may be part of what is left

    def begin_stop(self) -> None:
        """What is under way goes on, and nothing comes after it on this connection; stalls count from now.

        A request whose body has not come whole was not admitted, and cannot be any more. It is refused now, or a body
        that trickles could hold the stop up. Live audio is the exception: its session ends by itself, with an event.
        """
        now = self._now()
        self._heard_at = self._stopped_at = now
        self._progress.restart(now)
        if self._running is not None:
            self._running.keep_alive = False
        # The body of a request that has been refused already, or whose answer has begun, is only read so that its
        # sender sees the answer. `check` limits that.
        is_arriving = self._owed is _Owed.BODY and self._receives_running
        is_admissible = is_arriving and not self._keeps_pace() and not self._is_refused
        if is_admissible and self._exchange is not None and not self.cycle.response_started:
            self._exchange.end_body(ShuttingDown())

    def end(self) -> None:
        """Nothing comes any more: close where all is sent. A request that has not come whole is none."""
        # asyncio's TLS transport cannot be closed twice, and over TLS a close takes until the peer has agreed.
        if self._parted_at is None and not self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self.transport.close()

    def check(self, now: float) -> None:
        """Let go of a peer that has taken too long over what it owes, is idle for too long, or has left unnoticed."""
        stops = self._traffic.stop.begun.is_set()
        is_closing = self.transport.is_closing()
        stands_s = now - self._progress.stands_since(now, is_closing=is_closing)
        if self._is_over(stands_s, STALL_S if stops else self._limits.send_timeout_s):
            self.abort()
        elif self._parted_at is not None:
            if now - self._parted_at >= (STALL_S if stops else LINGER_S):
                self.abort()
        elif self.answers and (
            self.flow.read_paused or self._owed is _Owed.HEAD or self._keeps_pace() or not self._receives_running
        ):
            self._heard_at = now  # it is not the peer's turn, or not ours to say so
            self._pace.restart(now)
            if self.flow.read_paused and self._progress.peer_has_closed():
                self.abort()
        elif self._owed is not _Owed.NOTHING and stops:
            # The answer has been sent. What still comes is read for a while so that the peer can see it.
            owed_since = max(self._begun_at, self._stopped_at)
            if now - self._heard_at >= STALL_S or now - owed_since >= LINGER_S:
                self.abort()
        else:
            self._check_limits(now)

    def abort(self) -> None:
        """Detach: the connection is gone at once, with whatever was not sent."""
        self.pipeline.clear()
        self._unparsed = b""
        if self._exchange is not None:
            self._exchange.detach()
        self.transport.abort()

    def _check_limits(self, now: float) -> None:
        match self._owed:
            case _Owed.HEAD:
                if self._is_over(now - self._begun_at, self._limits.header_timeout_s):
                    self._part(RequestTimeout("the headers of the request did not arrive in time"))
            case _Owed.BODY:
                if self._is_over(now - self._heard_at, self._limits.body_timeout_s):
                    self._end_body(now, "the body of the request stopped arriving")
                elif self._pace.is_too_slow(now):
                    self._end_body(now, "the body of the request arrives too slowly (min_body_bytes_per_s)")
            case _Owed.NOTHING if not self.answers and not self._traffic.stop.begun.is_set():
                limit_s = self._limits.header_timeout_s if self._running is None else self._limits.keep_alive_s
                if self._is_over(now - self._begun_at, limit_s):
                    self.transport.close()

    def _end_body(self, now: float, message: str) -> None:
        """Have the request answered where that can still be, and let go of the peer afterwards."""
        if self._exchange is None or self.cycle.response_started:
            self.abort()
            return
        self._exchange.end_body(RequestTimeout(message))
        self._parted_at = now

    @property
    def _receives_running(self) -> bool:
        """Whether what arrives belongs to the request that runs, and not to one behind it in the pipeline.

        uvicorn reads on in a packet that holds more than one request, so `cycle` may be ahead of `_running`.
        """
        return self.cycle is self._running

    @property
    def _is_done(self) -> bool:
        """Whether nothing that comes is answered any more."""
        return self._parted_at is not None or self.transport.is_closing()

    def _keeps_pace(self) -> bool:
        """Whether the application times the body that arrives."""
        return self._exchange is not None and self._exchange.keeps_pace

    def _should_upgrade(self) -> bool:
        """Whether this request becomes a WebSocket; any other way of asking for one is ignored, as RFC 9110 allows."""
        names = {name for name, _ in self.headers}
        plain = self.scope["method"] == "GET" and self.scope["http_version"] == "1.1"
        body = b"transfer-encoding" in names or b"content-length" in names
        return plain and not body and not self.answers and self._get_upgrade() == b"websocket"

    def _upgrade(self, early: bytes) -> None:
        """Hand the connection over; `early` is what came behind the head."""
        if self._traffic.stop.begun.is_set():
            self._part(ShuttingDown())
            return
        try:
            upgrade = Upgrade(self.scope, self.url)
        except InvalidRequest as refusal:
            self._part(refusal)
            return
        self.connections.discard(self)
        is_writable = not self.flow.write_paused
        socket = WebSocketConnection(self._traffic, self.transport, upgrade, early, is_writable=is_writable)
        self.transport.set_protocol(socket)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        if self._traffic.stop.begun.is_set():
            cycle.keep_alive = False
            self._is_refused = True
            self._exchange = Exchange(self._traffic.goodbye, cycle, self._traffic.stop.begun)
        else:
            self._exchange = Exchange(app, cycle, self._traffic.stop.begun)  # type: ignore[arg-type]  # two names for an ASGI application
        super()._start_asgi_task(cycle, self._exchange)  # type: ignore[arg-type]  # as above

    def _owe(self, owed: _Owed) -> None:
        self._owed = owed
        self._begun_at = self._heard_at
        self._pace.restart(self._begun_at)

    def _part(self, error: AntiphonError) -> None:
        """Answer what no application hears of, and read no more; a peer that still sends can see the answer.

        Where an answer is under way already there is no place for another.
        """
        answers = self.answers
        is_body_of_running = self._owed is _Owed.BODY and self._receives_running
        if answers and is_body_of_running and self._exchange is not None and self._exchange.keeps_pace:
            self._exchange.end_body(error)
            return
        if answers and (not is_body_of_running or self.cycle.response_started):
            self.abort()
            return
        if self._exchange is not None and answers:
            self._exchange.detach()
        refusal = error_response(error)
        entered = self._traffic.ledger.turned_away(refusal.status_code, reason_of(error), is_request=not answers)
        if entered is not None:
            refusal.headers[REQUEST_ID] = entered
        self.transport.write(last_answer(refusal, self.server_state.default_headers))
        self._linger()

    def _linger(self) -> None:
        """All is said: read no more than it takes for the peer to see it, although it still sends."""
        self._parted_at = self._now()
        self._unparsed = b""
        self._flow.release()
        self._flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    @staticmethod
    def _is_over(elapsed_s: float, limit_s: float) -> bool:
        """Whether a limit is reached, 0 being none."""
        return 0 < limit_s <= elapsed_s


def _new_parser(connection: HttpToolsProtocol) -> HttpRequestParser:
    """A parser as uvicorn makes it: data behind a request with `Connection: close` does not prevent its answer."""
    parser = HttpRequestParser(connection)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _framing_of(headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
    """The header that says where the body ends, None without a body. The parser has refused any that contradict it."""
    fields = dict(headers)
    return next(((name, fields[name]) for name in (b"transfer-encoding", b"content-length") if name in fields), None)


def _declared_bytes(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """The length of a body; 0 if it is not declared, because there is none or it comes in chunks."""
    match _framing_of(headers):
        case (b"content-length", length):
            return int(length)
        case _:
            return 0
