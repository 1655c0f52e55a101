"""Clients that behave badly on a bare socket: they stop in the middle of something, or do not read."""

import json
import select
import socket
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

from conformance_client import HANG_GUARD_S
from listener_stop import address_of

TASK_RUN, TASK_BATCH = "/v1/tasks/run", "/v1/tasks/batch"

_SMALL_BUFFER = 4096
UNREAD_ANSWERS = 600
"""So many OpenAPI documents are more than 10 MB; Linux keeps 4 MB for a connection (net.ipv4.tcp_wmem)."""
UNREAD_ITEMS, UNREAD_TEXT_CHARS = 256, 30_000
"""A batch that echoes as much answers 8 MB; it cannot have more items."""


def connect(url: str, *, receive_buffer: int | None = None) -> socket.socket:
    """A bare connection. A small `receive_buffer` (bytes) makes the server feel soon that nobody reads."""
    peer = socket.socket()
    peer.settimeout(HANG_GUARD_S)
    if receive_buffer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.connect(address_of(url))
    return peer


def head(url: str, method: str, path: str, **fields: object) -> bytes:
    """The head of a request; an underscore in a field's name stands for a dash."""
    host, port = address_of(url)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def json_request(url: str, path: str, content: Mapping[str, object], **fields: object) -> bytes:
    """A whole request with a JSON body."""
    body = json.dumps(content).encode()
    return head(url, "POST", path, Content_Type="application/json", Content_Length=len(body), **fields) + body


def stalled_head(url: str) -> socket.socket:
    """A client that has sent a part of its request's head."""
    peer = connect(url)
    peer.sendall(head(url, "POST", TASK_RUN)[:-4] + b"\r\nX-Slow: ")
    return peer


def stalled_body(url: str, model_id: str) -> socket.socket:
    """A client that has sent the head of an inference request and half of its body."""
    whole = json_request(url, TASK_RUN, {"model": model_id, "request": {"text": "never whole"}})
    peer = connect(url)
    peer.sendall(whole[:-20])
    return peer


@contextmanager
def trickling_head(url: str) -> Iterator[tuple[socket.socket, "Future[bytes]"]]:
    """A client that sends a byte of its head every tenth of a second; the future has what comes until it is cut off."""
    peer = stalled_head(url)
    with closing(peer), ThreadPoolExecutor(1) as threads:
        yield peer, threads.submit(_trickle, peer)


@contextmanager
def trickling_body(url: str, model_id: str) -> Iterator["Future[bytes]"]:
    """A client that sends a byte of its body every tenth of a second until it is answered; the future has the answer.

    The body is so long that it would take hours.
    """
    peer = connect(url)
    peer.sendall(head(url, "POST", TASK_RUN, Content_Type="application/json", Content_Length=10**6))
    peer.sendall(json.dumps({"model": model_id, "request": {"text": "x"}})[:-1].encode())
    with closing(peer), ThreadPoolExecutor(1) as threads:
        yield threads.submit(_trickle, peer)


def _trickle(peer: socket.socket) -> bytes:
    with suppress(ConnectionError):  # it is cut off between two bytes
        while not select.select([peer], [], [], 0.1)[0]:
            peer.sendall(b" ")
        return read_to_end(peer)
    return b""


def stalled_upload(url: str) -> socket.socket:
    """A client that is in the middle of a body in chunks, a file of unknown length."""
    peer = connect(url)
    form = "multipart/form-data; boundary=edge"
    peer.sendall(head(url, "POST", "/v1/audio/transcriptions", Content_Type=form, Transfer_Encoding="chunked"))
    peer.sendall(b"8\r\n--edge\r\n\r\n")
    return peer


def non_reader(url: str) -> socket.socket:
    """A client that asks for far more than a kernel keeps for one that does not read, and reads nothing."""
    peer = connect(url, receive_buffer=_SMALL_BUFFER)
    peer.sendall(head(url, "GET", "/openapi.json") * UNREAD_ANSWERS)
    return peer


def unread_batch(url: str, model_id: str) -> socket.socket:
    """A client of a batch whose one answer is longer than what a kernel keeps, and has begun; it is not read."""
    texts = ["x" * UNREAD_TEXT_CHARS] * UNREAD_ITEMS
    peer = connect(url, receive_buffer=_SMALL_BUFFER)
    peer.sendall(json_request(url, TASK_BATCH, {"model": model_id, "requests": [{"text": text} for text in texts]}))
    assert peer.recv(1) == b"H"
    return peer


def port_of(peer: socket.socket) -> int:
    """By which port the server knows this client."""
    port: int = peer.getsockname()[1]
    return port


def leave(peer: socket.socket, *, reset: bool = False) -> None:
    """Close the connection, or reset it."""
    if reset:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def read_to_end(peer: socket.socket) -> bytes:
    """All that comes until the server closes or resets the connection."""
    received = bytearray()
    try:
        while piece := peer.recv(65536):
            received += piece
    except ConnectionResetError:
        pass  # an end, too
    return bytes(received)
