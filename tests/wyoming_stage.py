"""A real server with a Wyoming listener over controlled models, and the library's real client. It asserts nothing.

The model `voice` speaks and the model `ear` hears; `ear` answers `ear|session|` and the words that it is to expect.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wyoming.asr import Transcribe
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.event import Event, Eventable

from antiphon.testing import ControlledCheckpoint
from conformance_client import eventually
from server_process import ServerProcess, running_server

HEARD = {"rate": 16000, "width": 2, "channels": 1}
"""The format that Home Assistant records in."""

_ADDRESS = re.compile(r"listening on wyoming at (\S+)")


@dataclass(frozen=True, slots=True)
class WyomingServer:
    """One server that listens, and where; `voice` and `ear` steer its models."""

    process: ServerProcess
    uri: str
    voice: ControlledCheckpoint
    ear: ControlledCheckpoint

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        """A client with a connection of its own."""
        client = AsyncClient.from_uri(self.uri)
        await client.connect()
        try:
            yield Client(client)
        finally:
            with suppress(ConnectionError):  # the server may have cut it off
                await client.disconnect()

    @property
    def path(self) -> str:
        """The socket file."""
        return self.uri.removeprefix("unix://")


class Client:
    """The library's client, with less to write."""

    def __init__(self, client: AsyncClient) -> None:
        self.bare = client

    async def send(self, *events: Eventable) -> None:
        """Send events, one after another."""
        for event in events:
            await self.bare.write_event(event.event())

    async def send_bytes(self, data: bytes) -> None:
        """Send anything."""
        self.bare._writer.write(data)
        await self.bare._writer.drain()

    async def next(self) -> Event | None:
        """The next event; None at the end."""
        return await self.bare.read_event()

    async def until(self, last: str) -> list[Event]:
        """All events to the first of this type, or to the end."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
            if event.type == last:
                break
        return events

    async def ask(self, *events: Eventable, until: str) -> list[Event]:
        """Send events and read the answer."""
        await self.send(*events)
        return await self.until(until)

    async def transcript(self, *expected: str, sound: bytes = bytes(3200)) -> list[Event]:
        """Have an audio heard: the whole answer."""
        return await self.ask(*spoken(sound, *expected), until="transcript-stop")


def spoken(sound: bytes, *expected: str) -> list[Eventable]:
    """The events of one audio, in two chunks; what is expected comes back from `ear`."""
    half = len(sound) // 4 * 2
    chunks = [AudioChunk(**HEARD, audio=piece) for piece in (sound[:half], sound[half:])]
    return [Transcribe(transcript_names=list(expected) or None), AudioStart(**HEARD), *chunks, AudioStop()]


@contextmanager
def wyoming_server(
    folder: Path, *flags: str, tcp: bool = False, options: Mapping[str, object] | None = None, **fields: object
) -> Iterator[WyomingServer]:
    """Serve until the block ends; on a socket file, or with `tcp` on a free port. `fields` are the configuration's."""
    voice, ear = ControlledCheckpoint(folder / "voice"), ControlledCheckpoint(folder / "ear")
    uri = "tcp://127.0.0.1:0" if tcp else f"unix://{folder}/w.sock"
    tasks = {"voice": "tts", "ear": "asr"}
    config = {
        "models": [{"id": it, "family": "controlled", "path": it, "task": tasks[it], "lazy": True} for it in tasks],
        "listeners": [{"kind": "wyoming", "uri": uri, **(options or {})}],
        "drain_timeout_ms": 0,
        **fields,
    }
    with running_server(folder, config, *flags) as process:
        yield WyomingServer(process, _address(process.log), voice, ear)


def _address(log: Path) -> str:
    found = eventually(lambda: _ADDRESS.search(log.read_text()), lambda match: match is not None, "its address")
    return str(found[1])


def types_of(events: Iterable[Event]) -> list[str]:
    """The types, with what repeats said once."""
    types: list[str] = []
    for event in events:
        if types[-1:] != [event.type]:
            types.append(event.type)
    return types


def sound_of(events: Iterable[Event]) -> bytes:
    """The samples of all chunks."""
    return b"".join(event.payload or b"" for event in events if AudioChunk.is_type(event.type))


def raw_event(kind: str, **fields: object) -> bytes:
    """An event as bytes, whatever its fields."""
    return json.dumps({"type": kind, **fields}).encode() + b"\n"
