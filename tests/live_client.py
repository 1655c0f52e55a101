"""A client of the live route: raw bytes on a socket, so that it can speak and listen at once and do both badly."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlencode, urlsplit

from server_process import HANG_GUARD_S

_BUFFER_BYTES = 4096

LIVE = "/v1/audio/transcriptions/live"


class LiveClient:
    """One live session over HTTP. `status` and `answer` are there once `listen` or `event` has read the head."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = connection.makefile("rb")
        self.status = 0
        self.fields: dict[str, str] = {}

    def say(self, data: bytes) -> None:
        """Send one chunk of audio."""
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        """Send the chunk that ends the body."""
        self.raw(b"0\r\n\r\n")

    def raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def leave(self) -> None:
        """Break the connection off."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the socket."""
        self._received.close()

    def event(self) -> dict[str, object] | None:
        """The next event; None for the mark of the end."""
        if not self.status:
            self._read_head()
        for line in self._lines():
            if line.startswith(b"data: "):
                return None if line == b"data: [DONE]" else json.loads(line.removeprefix(b"data: "))
        raise AssertionError("the answer ended without another event")

    def events(self) -> list[dict[str, object]]:
        """All events up to the end of the answer; the mark of a proper end is the last of them, as {}."""
        if not self.status:
            self._read_head()
        found = [line.removeprefix(b"data: ") for line in self._lines() if line.startswith(b"data: ")]
        return [{} if it == b"[DONE]" else json.loads(it) for it in found]

    def refusal(self) -> dict[str, object]:
        """The error of an answer that is not 200."""
        self._read_head()
        error: dict[str, object] = json.loads(self._received.read(int(self.fields["content-length"])))["error"]
        return error

    def _read_head(self) -> None:
        self.status = int(self._received.readline().split()[1])
        while line := self._received.readline().strip():
            name, _, value = line.decode().partition(":")
            self.fields[name.lower()] = value.strip()

    def _lines(self) -> Iterator[bytes]:
        """The lines of a chunked body whose chunks hold whole lines."""
        while size := int(self._received.readline() or b"0", 16):
            yield from self._received.read(size + 2).splitlines()


@contextmanager
def live_client(url: str, *fields: str, **query: object) -> Iterator[LiveClient]:
    """Begin a session; `fields` are further lines of the head. The kernel keeps little for one that does not read."""
    place = urlsplit(url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        connection.settimeout(HANG_GUARD_S)
        connection.connect((place.hostname, place.port))
        head = [f"POST {LIVE}?{urlencode(query)} HTTP/1.1", f"Host: {place.netloc}", "Transfer-Encoding: chunked"]
        connection.sendall("\r\n".join([*head, *fields, "", ""]).encode())
        with closing(LiveClient(connection)) as client:
            yield client


def text_of(events: list[dict[str, object]]) -> str:
    """The joined deltas."""
    return "".join(str(it["delta"]) for it in events if it.get("type") == "transcript.text.delta")
