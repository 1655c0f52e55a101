"""A model hub of a few files over real HTTP, with a CDN on another port, as huggingface_hub asks. It asserts nothing.

Large files are answered by a redirect to the CDN with the `X-Linked-*` headers, others by the hub itself. is written
down. Faults are set by attributes, each for the time that it is set.
"""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE_BYTES = 1000
"""A file from this size on lies on the CDN."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `place` is "hub" or "cdn", `range` the header, `token` the credentials that came with it."""

    place: str
    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class FakeHub:
    """One repository at one commit.

    `token` is wanted of everybody, `told` is what the hub says that the commit is. `cut_at` breaks a CDN answer off at
    that byte, once; `cdn_status` is what the CDN answers instead; `held` is waited for before the second half of an
    answer of the CDN's.
    """

    repository: str
    revision: str
    files: dict[str, bytes]
    asked: list[Asked] = field(default_factory=list)
    token: str | None = None
    told: str | None = None
    cut_at: int | None = None
    cdn_status: int | None = None
    ranges: bool = True
    half_sent: threading.Event = field(default_factory=threading.Event)
    held: threading.Event | None = None
    hub_port: int = 0
    cdn_port: int = 0

    @property
    def url(self) -> str:
        """What HF_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self.hub_port}"

    def ranges_of(self, place: str = "cdn") -> list[str | None]:
        """The ranges that were asked for there with GET, in order."""
        return [it.range for it in self.asked if (it.place, it.method) == (place, "GET")]


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve it until the block ends."""
    servers = [_Server(hub, place) for place in ("hub", "cdn")]
    hub.hub_port, hub.cdn_port = (server.server_port for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        if hub.held is not None:
            hub.held.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: FakeHub, place: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.hub = hub
        self.place = place

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that leave."""


class _Request(BaseHTTPRequestHandler):
    """One request; the base class fixes the names of `do_GET` and `do_HEAD`."""

    server: _Server

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""

    def _answer(self) -> None:
        hub, place = self.server.hub, self.server.place
        token = self.headers.get("Authorization")
        hub.asked.append(Asked(place, self.command, self.path, self.headers.get("Range"), token))
        if place == "cdn":
            self._content(hub.files[self.path.removeprefix("/cdn/").partition("?")[0]])
            return
        match = re.fullmatch(r"/(?P<repository>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", self.path)
        if match is None or match["repository"] != hub.repository:
            self._refuse(404, "RepoNotFound")
        elif hub.token is not None and token != f"Bearer {hub.token}":
            self._refuse(401, "GatedRepo")
        elif match["revision"] != hub.revision:
            self._refuse(404, "RevisionNotFound")
        elif match["path"] not in hub.files:
            self._refuse(404, "EntryNotFound")
        elif len(hub.files[match["path"]]) < LARGE_BYTES:
            self._content(hub.files[match["path"]])
        else:
            self._redirect(match["path"], hub.files[match["path"]])

    def _redirect(self, path: str, content: bytes) -> None:
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.1:{self.server.hub.cdn_port}/cdn/{path}?signature=secret")
        self.send_header("X-Repo-Commit", self.server.hub.told or self.server.hub.revision)
        self.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Linked-Size", str(len(content)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _content(self, content: bytes) -> None:
        hub, at_cdn = self.server.hub, self.server.place == "cdn"
        if at_cdn and hub.cdn_status is not None:
            self._refuse(hub.cdn_status, None)
            return
        start = 0
        if hub.ranges and (match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")):
            start = int(match[1])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("X-Repo-Commit", hub.told or hub.revision)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.end_headers()
        if self.command == "HEAD":
            return
        if at_cdn and hub.held is not None and not start:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            hub.half_sent.set()
            hub.held.wait()
            start = len(content) // 2
        if at_cdn and hub.cut_at is not None:
            self.wfile.write(content[start : hub.cut_at])
            hub.cut_at = None
            self.close_connection = True
            return
        self.wfile.write(content[start:])

    def _refuse(self, status: int, code: str | None) -> None:
        self.send_response(status)
        if code is not None:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()
