"""A client that goes before it has its answer. It asserts nothing."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from controlled_server import SPEECH
from server_process import HANG_GUARD_S


@contextmanager
def asking_for_speech(url: str, body: Mapping[str, object], key: str = "any") -> Iterator[None]:
    """Ask for speech over plain HTTP, and have gone when the block ends."""
    headers = {"authorization": f"Bearer {key}"}
    request = httpx.Request("POST", url + SPEECH, json=body, headers=headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port), timeout=HANG_GUARD_S) as client:
        client.sendall(f"POST {SPEECH} HTTP/1.1\r\n{head}\r\n".encode() + request.content)
        yield
