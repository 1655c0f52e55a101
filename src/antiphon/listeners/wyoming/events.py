"""Wyoming's events as they come from a peer that nobody knows: read within bounds, their fields checked. No meaning.

The library's own reader allocates whatever length a peer names, and takes a broken line for the end of the stream.
Source of the form: https://github.com/OHF-Voice/wyoming#format.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
from wyoming.event import Event

from antiphon.config.json_objects import DuplicateKey, load_json
from antiphon.vocabulary.errors import InvalidRequest, TooLarge

MAX_LINE_BYTES = 64 * 1024
"""The longest line that an event may begin with; older clients have all of their data in it."""

MAX_DATA_BYTES = 2 * 1024 * 1024
"""The most data beside the line: more than any text that may be spoken takes as JSON."""

MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
"""The longest payload of one event."""

T = TypeVar("T")


class _Line(msgspec.Struct):
    type: str
    data: dict[str, object] | None = None
    data_length: int | None = None
    payload_length: int | None = None


_LINE = msgspec.json.Decoder(_Line)
_DATA = msgspec.json.Decoder(dict[str, object])


async def read_event(reader: asyncio.StreamReader, on_begun: Callable[[], None]) -> Event:
    """Read one event; the reader's limit bounds the line, `on_begun` is told when its first byte is there.

    Raises InvalidRequest for what is no event, TooLarge for one that is over a limit, before any of it is read, and
    IncompleteReadError at the end of the stream. After an error the rest of the stream means nothing.
    """
    try:
        first = await reader.readexactly(1)
        on_begun()
        line = _decode(_LINE, first + (b"" if first == b"\n" else await reader.readuntil(b"\n")))
        data = line.data or {}
        if size := _length(line.data_length, MAX_DATA_BYTES, "data_length"):
            beside: dict[str, object] = _decode(_DATA, await reader.readexactly(size))
            data |= beside
    except asyncio.LimitOverrunError as error:
        raise TooLarge(f"the line of an event is longer than {MAX_LINE_BYTES} bytes") from error
    except DuplicateKey as error:
        raise InvalidRequest(f"this is no event: {str(error)[:200]}", param=str(error.place[-1])[:200]) from error
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest(f"this is no event: {str(error)[:200]}") from error
    size = _length(line.payload_length, MAX_PAYLOAD_BYTES, "payload_length")
    return Event(line.type, data, await reader.readexactly(size) if size else None)


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """Read JSON; msgspec's own decoder keeps the last of two equal keys."""
    decoded = decoder.decode(raw)
    load_json(raw)
    return decoded


def text_of(event: Event, name: str) -> str:
    """A text that the event must have; raises InvalidRequest."""
    return required(event.data.get(name), str, f"{event.type}: {name}")


def optional_text_of(event: Event, name: str) -> str | None:
    """A text that the event may have; raises InvalidRequest for anything else."""
    return None if event.data.get(name) is None else text_of(event, name)


def number_of(event: Event, name: str) -> int:
    """An integer that the event must have; raises InvalidRequest."""
    return required(event.data.get(name), int, f"{event.type}: {name}")


def required(value: object, kind: type[T], name: str) -> T:
    """The value, which must be of this kind (a bool is no integer); raises InvalidRequest naming the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{name}: {str(error)[:200].lower()}") from error


def _length(given: int | None, limit: int, name: str) -> int:
    length = given or 0
    if length < 0:
        raise InvalidRequest(f"{name} must be 0 or more")
    if length > limit:
        raise TooLarge(f"{name} is {length}; the limit is {limit}")
    return length
