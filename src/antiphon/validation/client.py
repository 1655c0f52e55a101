"""The client of a validation: requests whose last byte is held back until all of them can be let go of together."""

import json
import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Self
from urllib.parse import urlsplit

from antiphon.validation.errors import NoAnswer

_TIMEOUT_S = 600.0
"""No answer takes this long, a load before it included, unless something hangs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, whole."""

    status: int
    body: bytes

    def json(self) -> Mapping[str, object]:
        """The body as an object; raises NoAnswer for anything else."""
        try:
            told = json.loads(self.body)
        except ValueError as error:
            raise NoAnswer("an answer is not JSON") from error
        if not isinstance(told, dict):
            raise NoAnswer("an answer is no JSON object")
        return told


class HeldRequest:
    """One POST of JSON over a connection of its own, all but its last byte sent. Every method raises NoAnswer."""

    def __init__(self, url: str, path: str, body: bytes) -> None:
        self._last = body[-1:]
        self._connection = _connection(url)
        try:
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection.putrequest("POST", path)
            self._connection.putheader("content-type", "application/json")
            self._connection.putheader("content-length", str(len(body)))
            self._connection.endheaders(body[:-1])
        except (OSError, HTTPException) as error:
            raise _broken(error) from error

    def let_go(self) -> None:
        """Send the last byte."""
        try:
            self._connection.send(self._last)
        except OSError as error:
            raise _broken(error) from error

    def answer(self) -> Answer:
        """Wait for the whole answer."""
        try:
            response = self._connection.getresponse()
            return Answer(response.status, response.read())
        except (OSError, HTTPException) as error:
            raise _broken(error) from error

    def close(self) -> None:
        """Leave, also while another thread waits for the answer; harmless when done twice."""
        if self._connection.sock is not None:
            with suppress(OSError):  # the server has left before
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def fileno(self) -> int:
        """What `select` waits for."""
        return self._connection.sock.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def any_answered(requests: Sequence[HeldRequest]) -> bool:
    """Whether the server has begun to answer one of them, or has closed its connection."""
    readable, _, _ = select.select(requests, [], [], 0)
    return bool(readable)


def ask(url: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
    """Send one request, a POST where there is a body, and wait for the whole answer; raises NoAnswer."""
    connection = _connection(url)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json"})
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, HTTPException) as error:
        raise _broken(error) from error
    finally:
        connection.close()


def _connection(url: str) -> HTTPConnection:
    return HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_S)


def _broken(error: Exception) -> NoAnswer:
    return NoAnswer(f"no whole answer came ({type(error).__name__})")
