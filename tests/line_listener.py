"""A listener as somebody else would write one: a line in, a status code out, on a Unix socket. It notes what it does.

Installed for one server by `installed`; `notes` reads what it wrote, with the times of a checkpoint's events.
"""

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from antiphon.ports.listener import AsgiMessage, Served

NOTES = "lines.jsonl"


class LineListener:
    """Each line is a text to be spoken by the model `m`.

    The option `fault` says where it breaks; with `lingers` a talk lasts on after its answer, until the cut. With
    `asks_at_stop` it asks for this path when it drains, as long as a talk lasts, and notes the answer.
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        self._path = Path(str(options["path"]))
        self._fault = options.get("fault")
        self._lingers = bool(options.get("lingers", False))
        self._asks_at_stop = options.get("asks_at_stop")
        self._talks: set[asyncio.Task[None]] = set()
        if self._fault == "make":
            raise ValueError("made to fail")

    def open(self) -> str:
        """Take the address."""
        if self._fault == "open":
            from antiphon.vocabulary.errors import ConfigError

            raise ConfigError("lines: made to fail")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()
        self._note("open")
        return f"lines:{self._path}"

    async def serve(self, served: Served) -> None:
        """Serve until the stop, then drain."""
        if self._fault == "serve":
            raise RuntimeError("made to fail")
        server = await asyncio.start_unix_server(lambda r, w: self._begin(served, r, w), sock=self._socket)
        if self._fault == "later":
            return
        await served.stop.begun.wait()
        self._note("stopping")
        server.close()
        if self._asks_at_stop is not None:
            status, answer = await _asked(served, b"", "GET", str(self._asks_at_stop))
            self._note(f"asked: {status} {answer.decode()}")
        if self._talks:
            await asyncio.wait(self._talks)
        self.close()
        self._note("returned")

    def close(self) -> None:
        """Give the address back."""
        self._socket.close()
        self._path.unlink(missing_ok=True)
        self._note("closed")

    def _begin(self, served: Served, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(_talk(served, reader, writer, lingers=self._lingers))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    def _note(self, what: str) -> None:
        with self._path.with_name(NOTES).open("a") as file:
            file.write(json.dumps({"t": time.monotonic(), "what": what}) + "\n")


async def _talk(served: Served, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, lingers: bool) -> None:
    text = (await reader.readline()).decode().rstrip("\n")
    status, _ = await _asked(served, json.dumps({"model": "m", "input": text}).encode())
    writer.write(b"%d\n" % status)
    await writer.drain()
    if lingers:
        await served.stop.cut.wait()
    writer.close()


async def _asked(
    served: Served, body: bytes, method: str = "POST", path: str = "/v1/audio/speech"
) -> tuple[int, bytes]:
    statuses: list[int] = []
    answer = bytearray()
    left = asyncio.Event()
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> AsgiMessage:
        for message in given:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        answer.extend(message.get("body", b""))

    scope = {"type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path}
    scope |= {"raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": [], "server": None}
    await served.app({**scope, "asgi": {"version": "3.0"}, "client": None}, receive, send)
    return statuses[0], bytes(answer)


def installed(folder: Path) -> dict[str, str]:
    """Install this module as the listener kind `lines`; gives the environment in which a server finds it."""
    about = folder / "line_listener-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: line-listener\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[antiphon.listeners]\nlines = line_listener:LineListener\n")
    already = [path] if (path := os.environ.get("PYTHONPATH")) else []
    return {"PYTHONPATH": ":".join([*already, str(folder), str(Path(__file__).parent)])}


def notes(folder: Path) -> list[tuple[float, str]]:
    """What the listener did, in order: monotonic seconds, and a word."""
    file = folder / NOTES
    lines = file.read_text().splitlines() if file.exists() else []
    return [(note["t"], note["what"]) for note in map(json.loads, lines)]
