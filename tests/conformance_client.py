"""An HTTP client for tests whose calls overlap: on real sockets, each call in a thread, every wait with a hang guard.

It knows no route. A call that must be cut off, or whose answer comes in pieces, is an `OpenCall` on its own connection.
"""

import http.client
import json
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import httpx

from server_process import HELD_GUARD_S

T = TypeVar("T")

HANG_GUARD_S = float(os.environ.get("ANTIPHON_HANG_GUARD_S", "30"))
"""No call takes this long unless something hangs. Units: seconds."""
POLL_S = 0.005


class Pending:
    """A call that is under way in a thread of its own."""

    def __init__(self, name: str, call: Callable[[], httpx.Response]) -> None:
        self._name = name
        self._future: Future[httpx.Response] = Future()
        threading.Thread(target=self._run, args=(call,), name=name, daemon=True).start()

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def result(self, timeout_s: float = HANG_GUARD_S) -> httpx.Response:
        """The answer, whatever its status. Raises AssertionError if none comes, and what httpx raises."""
        try:
            return self._future.result(timeout_s)
        except (NotYet, httpx.TimeoutException) as error:
            raise AssertionError(f"no answer to {self._name}") from error

    def ok(self, timeout_s: float = HANG_GUARD_S) -> dict[str, object]:
        """The JSON of an answer that must be 200."""
        answer = self.result(timeout_s)
        assert answer.status_code == 200, f"{self._name}: {answer.status_code} {answer.text}"
        return answer.json()

    def has_ended(self) -> bool:
        """Whether the answer is there. To prove that a call waits, look at what it waits for; this may be too early."""
        return self._future.done()

    def settle(self, timeout_s: float) -> bool:
        """Wait until the call has ended in whatever way; False if it does not."""
        try:
            self._future.exception(timeout_s)
        except NotYet:
            return False
        return True

    def _run(self, call: Callable[[], httpx.Response]) -> None:
        try:
            self._future.set_result(call())
        except BaseException as error:  # noqa: BLE001 (whoever asks for the result gets it)
            self._future.set_exception(error)


class OpenCall:
    """A request on its own connection: it has been sent, its answer is read as it comes, and it can be cut off."""

    def __init__(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> None:
        self._name = f"{method} {path}"
        self._connection = connection
        self._connection.request(method, path, body, dict(headers))
        self._socket = self._connection.sock  # the connection lets go of it once the answer will end with it
        self._answer: http.client.HTTPResponse | None = None

    def __repr__(self) -> str:
        return f"<open {self._name}>"

    def head(self) -> http.client.HTTPResponse:
        """Wait for the headers."""
        if self._answer is None:
            try:
                self._answer = self._connection.getresponse()
            except TimeoutError as error:
                raise AssertionError(f"no headers for {self._name}") from error
        return self._answer

    def has_answer(self) -> bool:
        """Whether some of the answer is there."""
        return self._answer is not None or bool(select.select([self._socket], [], [], 0)[0])

    def events(self) -> Iterator[dict[str, object]]:
        """The data of each server-sent event up to `[DONE]` or the end of the answer, each as soon as it comes."""
        answer = self.head()
        assert answer.status == 200, f"{self._name}: {answer.status} {answer.read()!r}"
        while line := answer.readline():
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                yield json.loads(line.removeprefix(b"data: "))

    def read(self) -> bytes:
        """The rest of the answer."""
        return self.head().read()

    def cut(self, *, reset: bool = False) -> None:
        """Leave: close the connection, or reset it, so that the server's next write fails. Harmless when done twice."""
        if reset and self._socket.fileno() != -1:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._answer is not None:
            self._answer.close()
        self._connection.close()
        self._socket.close()


class Client:
    """Calls to one server. `calls` and `open_calls` are all that were started since the last `forget`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[Pending] = []
        self.open_calls: list[OpenCall] = []
        self._http = httpx.Client(base_url=url, timeout=HANG_GUARD_S, limits=httpx.Limits(max_connections=None))

    def call(self, method: str, path: str, **request: object) -> httpx.Response:
        """Make a call and wait for its answer. `request` is httpx's: json, params, data, files, content, headers."""
        return self._http.request(method, path, **request)

    def start(self, method: str, path: str, **request: object) -> Pending:
        """Make a call meanwhile."""
        name = f"{method} {path} {request.get('json', '')}".strip()
        pending = Pending(name, lambda: self.call(method, path, timeout=HELD_GUARD_S, **request))
        self.calls.append(pending)
        return pending

    def open(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, object] | None = None,
        over: http.client.HTTPConnection | None = None,
    ) -> OpenCall:
        """Send a request on a connection of its own: a new one, or one that `accepted` gave."""
        target = f"{path}?{urlencode(params)}" if params else path
        opened = OpenCall(over or self._connection(), method, target, *_encoded(json))
        self.open_calls.append(opened)
        return opened

    def accepted(self) -> http.client.HTTPConnection:
        """A connection that the server has accepted, so that what is sent on it next is read at once."""
        connection = self._connection()
        connection.request("GET", "/v1/models")
        connection.getresponse().read()
        return connection

    def connect(self) -> socket.socket:
        """A bare connection, for bytes that no client would send; the test closes it."""
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname, parts.port), timeout=HANG_GUARD_S)

    def settle(self, timeout_s: float) -> list[Pending]:
        """Cut the open calls, wait for the others and forget them all; those that do not end are returned."""
        for opened in self.open_calls:
            opened.cut()
        deadline = time.monotonic() + timeout_s
        stuck = [it for it in self.calls if not it.settle(max(0.0, deadline - time.monotonic()))]
        self.calls, self.open_calls = [], []
        return stuck

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=HANG_GUARD_S)


def eventually(
    observe: Callable[[], T], is_wanted: Callable[[T], bool], what: str, timeout_s: float | None = None
) -> T:
    """Look at a state that will come and stay until it is there; raises AssertionError with what was seen last.

    Units: seconds; without `timeout_s` the limit is HANG_GUARD_S.
    """
    deadline = time.monotonic() + (HANG_GUARD_S if timeout_s is None else timeout_s)
    while not is_wanted(seen := observe()):
        assert time.monotonic() < deadline, f"{what} did not come; last seen: {seen}"
        time.sleep(POLL_S)
    return seen


def _encoded(content: object) -> tuple[bytes, dict[str, str]]:
    if content is None:
        return b"", {}
    return json.dumps(content).encode(), {"content-type": "application/json"}
