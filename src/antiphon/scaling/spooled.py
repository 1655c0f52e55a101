"""A request's body as it is kept until a replica is chosen, and the model that it names. It judges nothing of the rest.

A body is received whole first: no replica is held while it arrives, and the choice is made with what is known then.
"""

import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import IO, Self

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from antiphon.http.bodies import chunks, media_type
from antiphon.http.multipart import MAX_PARAMETERS, SPILL_BYTES

MAX_JSON_LOOK_BYTES = 16 * 1024 * 1024
"""A longer body in JSON is not looked into: that takes the loop, and costs nothing but that any replica may get it."""

MAX_NAME_BYTES = 1024
"""A longer name is none."""

_BLOCK_BYTES = 64 * 1024
_FIELD = "model"


class Spool:
    """A whole body: in memory at first, in an unlinked file once it is large. Use it as a context manager."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(SPILL_BYTES, prefix="antiphon-")  # noqa: SIM115 (closed by __exit__)
        self.size_bytes = 0
        self.model = ""
        """The model that it names, "" where that is not to be seen."""

    async def receive(self, request: Request, limit_bytes: int) -> None:
        """Receive the body of this request; raises what `chunks` raises."""
        look = _form_look(request)
        async with aclosing(chunks(request, limit_bytes)) as body:
            async for chunk in body:
                self.size_bytes += len(chunk)
                self._file.write(chunk)
                if look is not None:
                    look.feed(chunk)
        self._file.seek(0)
        if look is not None:
            self.model = look.model()
        elif 0 < self.size_bytes <= MAX_JSON_LOOK_BYTES:
            self.model = _named_in(self._file.read()).model
            self._file.seek(0)

    async def blocks(self) -> AsyncIterator[bytes]:
        """The body, from its start."""
        while block := self._file.read(_BLOCK_BYTES):
            yield block

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()


class _Named(msgspec.Struct):
    model: str = ""
    id: str = ""


class _FormLook:
    """A form, in its field `model`, which may stand anywhere; what follows that is not parsed."""

    def __init__(self, boundary: bytes) -> None:
        self._header_name = self._header_value = b""
        self._is_wanted = False
        self._is_over = False
        self._name = bytearray()
        self._parser = MultipartParser(
            boundary,
            {
                "on_header_begin": self._header_begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_data,
                "on_header_end": self._header_end,
                "on_part_data": self._part_data,
                "on_part_end": self._part_end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        if self._is_over:
            return
        try:
            self._parser.write(chunk)
        except FormParserError:
            self._is_over = True  # the replica says what is wrong

    def model(self) -> str:
        return self._name.decode("utf-8", "replace") if len(self._name) <= MAX_NAME_BYTES else ""

    def _header_begin(self) -> None:
        self._header_name = self._header_value = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _header_data(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _header_end(self) -> None:
        is_disposition = self._header_name.lower() == b"content-disposition"
        if is_disposition and not self._is_over and self._header_value.count(b";") <= MAX_PARAMETERS:
            self._is_wanted = parse_options_header(self._header_value)[1].get(b"name") == _FIELD.encode()

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_wanted and len(self._name) <= MAX_NAME_BYTES:
            self._name += data[start:end]

    def _part_end(self) -> None:
        self._is_over = self._is_over or self._is_wanted  # the first one counts, also within one chunk
        self._is_wanted = False


def _form_look(request: Request) -> _FormLook | None:
    """What looks for the model in this request's form; None where it has none that can be read."""
    content_type = request.headers.get("content-type", "")
    if media_type(request.headers) != "multipart/form-data" or content_type.count(";") > MAX_PARAMETERS:
        return None
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    try:
        return _FormLook(boundary) if boundary else None
    except FormParserError:
        return None  # the replica says what is wrong


def model_id_in(raw: bytes) -> str:
    """The member `id` of a body in JSON, "" where it has none: the model that a change is about."""
    return _named_in(raw).id


def _named_in(raw: bytes) -> _Named:
    """What a body in JSON names; it is taken for one whatever its content type says."""
    try:
        return msgspec.json.decode(raw, type=_Named)
    except (msgspec.DecodeError, RecursionError):
        return _Named()  # the replica says what is wrong
