"""Request bodies: received within a limit, checked as JSON, and read out when a refusal left them unread.

It knows bytes, pydantic models and domain errors; not what a route does with them, nor how an error is answered.
"""

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.config.json_objects import DuplicateKey, load_json
from antiphon.http.held_bodies import share_of
from antiphon.runtime.aside import aside
from antiphon.vocabulary.errors import InvalidRequest, TooLarge, UnsupportedMediaType

MAX_MESSAGE_CHARS = 300
"""A validator's message may quote its input; more than this of it is cut."""

MAX_PARAM_CHARS = 200
"""A dotted name may be made of keys that the client made up; more than this of it is cut."""

MODEL_WANTED = "the id of a model is wanted; GET /v1/models lists them"
"""What is said of a request that names no model."""

MAX_JSON_VALUES = 200_000
"""The most values of a body, which is read in one go. Two bytes are enough for one, and each takes half a microsecond
and tens of bytes of memory. So many take a tenth of a second; what fits into the largest body would take minutes, and
all memory.
"""

JSON_COPIES = 3
"""How often the content of a JSON body is in memory at worst: as bytes, and in what each of the two parsers made of it;
later as the fields, and the sound that was in them.
"""

_COUNTED_BYTES = 1024 * 1024
"""How much of a body is counted at once, which takes 2 ms."""

QUIET_S = 2.0
"""How long `drain` waits for a client that sends nothing more, in seconds."""

DRAIN_S = 30.0
"""How long `drain` reads in all, in seconds; it bounds a client that drips."""

M = TypeVar("M", bound=BaseModel)
JsonPath: TypeAlias = tuple[int | str, ...]


async def chunks(request: Request, limit_bytes: int, *, copies: int = 1) -> AsyncGenerator[bytes]:
    """Yield the body as it arrives; close the generator when it is left early.

    Each byte is counted `copies` times against the budget of all bodies, and until the request has been answered; a
    body that is left before its end counts no more. Raises TooLarge before a byte is read when the declared length is
    over the limit, else when the bytes are, ServerBusy when all bodies together are over the budget, and Starlette's
    ClientDisconnect when the client leaves.
    """
    declared = _declared_bytes(request.headers)
    if declared is not None and declared > limit_bytes:
        raise _too_large(limit_bytes)
    share = share_of(request.scope)
    received = 0
    more = True
    with share.kept():
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk: bytes = message.get("body", b"")
            received += len(chunk)
            if received > limit_bytes:
                raise _too_large(limit_bytes)
            share.add(copies * len(chunk))
            if chunk:
                yield chunk
            more = _more_follows(message)


async def read_bytes(request: Request, limit_bytes: int) -> bytes:
    """Receive the whole body. Raises what `chunks` raises."""
    async with aclosing(chunks(request, limit_bytes, copies=JSON_COPIES)) as body:
        return b"".join([chunk async for chunk in body])


async def read_json(request: Request, model: type[M], limit_bytes: int, *, require_json: bool = False) -> M:
    """Receive a JSON object as `model`, strictly.

    A number must not be in a string nor a bool, a text must not hold NUL, and no object may have a key twice.
    `require_json` refuses a body whose content type is not JSON: a page in a browser can send any other type across
    origins. Raises InvalidRequest (param = dotted name of the first field at fault), UnsupportedMediaType and what
    `chunks` raises.
    """
    if require_json and not is_json(media_type(request.headers)):
        raise UnsupportedMediaType("the body must be JSON, with the content type application/json")
    return await parse_json(await read_bytes(request, limit_bytes), model)


async def parse_json(raw: bytes, model: type[M]) -> M:
    """Read JSON as `model`, as strictly as `read_json`; raises InvalidRequest, and TooLarge for very many values."""
    return await aside(len(raw), _parsed, raw, model)


def _parsed(raw: bytes, model: type[M]) -> M:
    if _most_values(raw) > MAX_JSON_VALUES:
        raise TooLarge(f"the body holds more than {MAX_JSON_VALUES} JSON values")
    try:
        parsed = model.model_validate_json(raw, strict=True)
    except ValidationError as exc:
        faults = exc.errors(include_url=False, include_context=False, include_input=False)
        if faults[0]["type"] == "json_invalid":
            with suppress(ValueError, RecursionError):
                _refuse_unfit(json.loads(raw), ())  # half of a surrogate pair is all that this parser takes besides
        else:
            _refuse_duplicates(raw)  # first, since another fault may be that of the wrong one of two values
        place = _place_of(faults[0], raw)
        no_model = place == ("model",) and faults[0]["type"] == "missing"
        raise invalid_request(place, MODEL_WANTED if no_model else faults[0]["msg"]) from exc
    _refuse_duplicates(raw)
    _refuse_unfit(parsed, ())
    return parsed


def _refuse_duplicates(raw: bytes) -> None:
    """Refuse JSON in which an object has a key twice: pydantic's parser silently keeps the last one."""
    try:
        load_json(raw)
    except DuplicateKey as duplicate:
        raise invalid_request(duplicate.place, str(duplicate)) from duplicate
    except (ValueError, RecursionError) as fault:
        raise invalid_request((), f"is not valid JSON: {fault}") from fault


def media_type(headers: Headers) -> str:
    """The content type in lower case, without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Whether this media type is JSON (RFC 6839: a +json suffix is, too)."""
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )


def invalid_request(place: JsonPath, said: str) -> InvalidRequest:
    """Turn a validator's finding at this place into an error: `param` its dotted name, the message one short line."""
    param = ".".join(str(part) for part in place)[:MAX_PARAM_CHARS] or None
    line = " ".join(said.removeprefix("Value error, ").split())[:MAX_MESSAGE_CHARS]
    return InvalidRequest(f"{param or 'the body'}: {line[:1].lower()}{line[1:]}", param=param)


async def drain(receive: Receive, limit_bytes: int, *, quiet_s: float = QUIET_S, total_s: float = DRAIN_S) -> bool:
    """Read and drop the rest of a body; returns whether its end was reached.

    It stops after `limit_bytes`, after `quiet_s` seconds without a byte, and after `total_s` seconds.
    """
    left = limit_bytes
    with suppress(TimeoutError):
        async with asyncio.timeout(total_s):
            while left >= 0:
                async with asyncio.timeout(quiet_s):
                    message = await receive()
                if not _more_follows(message):
                    return True
                left -= len(message.get("body", b""))
    return False


class DrainUnreadBodies:
    """ASGI middleware: a client that is refused while it still sends can read the refusal.

    A socket that is closed over unread bytes resets the connection, and the reset may overtake the answer. So the end
    of an answer of status 400 or above is held back (its bytes are not) until the body is read out, within the limits
    of `drain`. A body that may be longer than `limit_bytes` costs the connection, and so does one that the client holds
    back until it is asked for (`Expect: 100-continue`).
    """

    def __init__(self, app: ASGIApp, limit_bytes: int, *, quiet_s: float = QUIET_S, total_s: float = DRAIN_S) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._quiet_s = quiet_s
        self._total_s = total_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _announces_body(headers := Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        declared = _declared_bytes(headers)
        bounded = declared is not None and declared <= self._limit_bytes
        withheld = headers.get("expect", "").lower() == "100-continue"
        unread = True
        refused = False

        async def receive_and_watch() -> Message:
            nonlocal unread, withheld
            withheld = False  # asking for the body is what sends "100 Continue"
            message = await receive()
            unread = _more_follows(message)
            return message

        async def send_and_drain(message: Message) -> None:
            nonlocal refused
            if not unread:
                await send(message)
            elif message["type"] == "http.response.start":
                refused = message["status"] >= 400
                await send(_closing(message) if refused and (withheld or not bounded) else message)
            elif not refused or withheld or message.get("more_body", False):
                await send(message)
            else:
                await send({**message, "more_body": True})
                await drain(receive, self._limit_bytes, quiet_s=self._quiet_s, total_s=self._total_s)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(scope, receive_and_watch, send_and_drain)


def _declared_bytes(headers: Headers) -> int | None:
    """The Content-Length, or None when there is none that can be believed."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _announces_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _more_follows(message: Message) -> bool:
    return message["type"] == "http.request" and bool(message.get("more_body", False))


def _closing(start: Message) -> Message:
    return {**start, "headers": [*start.get("headers", []), (b"connection", b"close")]}


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than the limit of {limit_bytes} bytes")


def _most_values(raw: bytes) -> int:
    """As many values as there can be in a body, or more: each but the first follows one of three signs.

    Those in texts count, too: it is cheap, and few texts have so many.
    """
    blocks = (raw[start : start + _COUNTED_BYTES] for start in range(0, len(raw), _COUNTED_BYTES))
    return sum(block.count(sign) for block in blocks for sign in (b",", b"[", b"{"))


def _place_of(fault: ErrorDetails, raw: bytes) -> JsonPath:
    """Where in the body a fault is, without the labels of a union's members, which pydantic puts among the names."""
    loc = fault["loc"]
    if not loc:  # also the place of a body that is no JSON
        return ()
    place: list[int | str] = []
    value = from_json(raw)
    for part in loc:
        named = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if named:
            value = value[part]
            place.append(part)
    return (*place, loc[-1]) if fault["type"] == "missing" else tuple(place)


def _refuse_unfit(value: object, place: JsonPath) -> None:
    """Refuse what JSON parsers let through and no engine can use: NaN, infinities, NUL, half of a surrogate pair."""
    match value:
        case str() if "\0" in value:
            raise invalid_request(place, "a text must not hold a NUL character")
        case str() if not value.isascii() and _has_half_pair(value):
            raise invalid_request(place, "a text must not hold half of a surrogate pair")
        case float() if not math.isfinite(value):
            raise invalid_request(place, "a number must be finite")
        case BaseModel():
            _refuse_unfit(value.__dict__, place)
        case dict():
            for key, item in value.items():
                if item is not None:
                    _refuse_unfit(item, (*place, key))
        case list():
            for index, item in enumerate(value):
                _refuse_unfit(item, (*place, index))
        case _:
            pass


def _has_half_pair(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
