"""The default listener: uvicorn on a socket that is ours."""

import json
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from antiphon.http.envelope import MALFORMED

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, but for its answer to what is no HTTP: that is in the shape of all errors."""

    def send_400_response(self, msg: str) -> None:
        """Answer and close the connection; `msg` is only for the log, where uvicorn has written it."""
        del msg
        body = json.dumps(MALFORMED).encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
        self.transport.close()


class Listener(uvicorn.Server):
    """Serves one application on one socket until a stop signal; afterwards `serve` returns, and the process goes on."""

    def __init__(self, app: FastAPI, bound: socket.socket, on_listening: Callable[[], Awaitable[None]]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        self._bound = bound
        self._on_listening = on_listening

    async def listen(self) -> None:
        """Serve until stopped; the requests under way are answered first."""
        await self.serve(sockets=[self._bound])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.started:
            await self._on_listening()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the stop signals for as long as it serves. uvicorn's own version raises them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(signal.Signals(number), frame)
