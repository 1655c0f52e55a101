"""The clients of a measurement: threads over bare sockets, as lean as a client can be.

It speaks as much HTTP/1.1 as our own servers need: keep-alive, answers with a Content-Length, and the beginnings of
answers in chunks. What it costs is no part of a server's processor time; of the wall clock it is some 30 microseconds a
request.
"""

import json
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self
from urllib.parse import urlsplit
from uuid import uuid4

from antiphon.bench.crowd import work_off
from antiphon.bench.errors import BenchError

_HEAD_END = b"\r\n\r\n"
_OK = b"HTTP/1.1 200 "
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_BLOCK_BYTES = 256 * 1024
_TIMEOUT_S = 300.0


def json_request(path: str, body: Mapping[str, object]) -> bytes:
    """A whole POST of JSON, ready to be sent."""
    return _request(path, "application/json", json.dumps(body).encode())


def form_request(path: str, fields: Mapping[str, str], file: bytes) -> bytes:
    """A whole POST of a form with fields and one audio file, ready to be sent."""
    boundary = uuid4().hex
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="clip.wav"\r\n'
        "content-type: audio/wav\r\n\r\n"
    )
    body = "".join(parts).encode() + file + f"\r\n--{boundary}--\r\n".encode()
    return _request(path, f"multipart/form-data; boundary={boundary}", body)


class Connection:
    """One kept-alive connection; use it as a context manager, which closes it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, request: bytes) -> bytes:
        """Send a request and return the answer's body; raises BenchError for any status but 200."""
        received, start = self._head(request)
        length = _LENGTH.search(received, 0, start)
        if length is None:
            raise BenchError("a server answered without a Content-Length")
        whole = start + int(length.group(1))
        while len(received) < whole:
            received += self._receive()
        body = bytes(received[start:whole])
        if not received.startswith(_OK):
            raise BenchError(f"a server refused: {_shown(body)}")
        return body

    def begin(self, request: bytes) -> None:
        """Send a request and return with the first byte of the body of an answer that is streamed in chunks.

        The connection is of no use afterwards. Raises BenchError for any other answer.
        """
        received, start = self._head(request)
        if not received.startswith(_OK) or not _CHUNKED.search(received, 0, start):
            raise BenchError(f"a server did not stream: {_shown(received)}")
        while (size_end := received.find(b"\r\n", start)) < 0 or len(received) <= size_end + 2:
            received += self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def _head(self, request: bytes) -> tuple[bytearray, int]:
        """Send a request and read until the head of its answer is there; returns that and where the body starts."""
        self._socket.sendall(request)
        received = bytearray()
        while (end := received.find(_HEAD_END)) < 0:
            received += self._receive()
        return received, end + len(_HEAD_END)

    def _receive(self) -> bytes:
        try:
            block = self._socket.recv(_BLOCK_BYTES)
        except TimeoutError as error:
            raise BenchError(f"a server did not answer within {_TIMEOUT_S:g} s") from error
        if not block:
            raise BenchError("a server closed a connection before it had answered")
        return block


def drive(url: str, requests: Sequence[bytes], clients: int) -> float:
    """Send all requests, each by whichever of the clients is free; returns the seconds that took.

    Connections are opened before the clock starts.
    """
    with ExitStack() as opened:
        connections = [opened.enter_context(Connection(url)) for _ in range(clients)]
        return work_off(requests, [connection.call for connection in connections])


def _shown(answer: bytes | bytearray) -> str:
    return answer[:300].decode("utf-8", "replace")


def _request(path: str, content_type: str, body: bytes) -> bytes:
    lines = f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-type: {content_type}", f"content-length: {len(body)}"
    return "\r\n".join((*lines, "", "")).encode() + body
