"""Forms: multipart/form-data received piece by piece, files in unlinked spools, texts in memory, all within limits.

It stands on python-multipart's streaming parser and not on Starlette's form, which needs a thread for every file and
takes a cut body for a whole one. It knows no route: which fields must be there, and what they mean, is theirs to say.
Source of the format: RFC 7578 and RFC 2046 section 5.1.
"""

import io
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from email.message import Message
from typing import BinaryIO, Self

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from antiphon.http.bodies import chunks, media_type
from antiphon.http.held_bodies import BodyShare, share_of
from antiphon.vocabulary.errors import InvalidRequest, TooLarge, UnsupportedMediaType

SPILL_BYTES = 1024 * 1024
"""A file above this size moves from memory to an unlinked file."""

MAX_PARAMETERS = 64
"""The most semicolons of one header: 8 kB of them take the event loop 45 ms, and a form may have a hundred such."""


@dataclass(frozen=True, slots=True)
class FormLimits:
    """What a form may hold. Units: bytes; `text_bytes` is for all its text fields together, `header_bytes` a line's.

    `file_fields` names the fields that are files, whatever a part's own headers say of it; all others are texts.
    `files` is for all of them together: a file may take a descriptor while the form arrives.
    """

    body_bytes: int
    file_fields: frozenset[str] = frozenset({"file"})
    files: int = 1
    parts: int = 100
    text_bytes: int = 1024 * 1024
    header_bytes: int = 8192
    headers: int = 16


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a form: `body` is open at its start. `filename` is what the client said: never a path of ours."""

    filename: str | None
    content_type: str | None
    body: BinaryIO
    size_bytes: int


class Form:
    """A received form. It owns its files and its share of the budget: close it, or use it as a context manager."""

    def __init__(
        self, texts: Mapping[str, Sequence[bytes]], uploads: Mapping[str, Sequence[Upload]], share: BodyShare
    ) -> None:
        self._texts = texts
        self._uploads = uploads
        self._share = share

    def values(self, name: str) -> list[str]:
        """Every text under this name, in the order sent. Raises InvalidRequest for what is no UTF-8 or holds a NUL."""
        return [_as_text(name, raw) for raw in self._texts.get(name, ())]

    def one(self, name: str, default: str | None = None) -> str | None:
        """The text under this name. Raises InvalidRequest when it was sent more than once."""
        values = self.values(name)
        if len(values) > 1:
            raise InvalidRequest(f"{name}: it is given {len(values)} times, but takes one value", param=name)
        return values[0] if values else default

    def files(self, name: str) -> list[Upload]:
        """Every file under this name, in the order sent."""
        return list(self._uploads.get(name, ()))

    def close(self) -> None:
        """Drop the files; harmless when done twice."""
        for uploads in self._uploads.values():
            for upload in uploads:
                upload.body.close()
        self._share.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


async def read_form(request: Request, limits: FormLimits) -> Form:
    """Receive a whole form; the caller closes it. On any error, and on cancellation, its files are closed here.

    Raises UnsupportedMediaType for another content type, TooLarge over a limit of bytes, InvalidRequest for a form that
    is malformed, cut or has too many parts or files, ServerBusy when all bodies together hold too much, and Starlette's
    ClientDisconnect when the client leaves.
    """
    receiver = _FormReceiver(limits, share_of(request.scope))
    parser = _parser(request, receiver)
    with ExitStack() as undo:
        undo.callback(receiver.close)
        async with aclosing(chunks(request, limits.body_bytes)) as body:
            async for chunk in body:
                _feed(parser, chunk)
        form = receiver.form()
        undo.pop_all()
    return form


class _Spool:
    """Where one file grows: memory at first, an unlinked file once it is large."""

    def __init__(self, filename: str | None, content_type: str | None, share: BodyShare) -> None:
        self._filename = filename
        self._content_type = content_type
        self._share = share
        self._body: BinaryIO = io.BytesIO()
        self._size_bytes = 0

    def write(self, data: bytes) -> None:
        if self._size_bytes <= SPILL_BYTES < self._size_bytes + len(data):
            with self._body as memory:
                memory.seek(0)
                self._share.add_file()
                self._body = tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115 (closed by the form)
                self._body.write(memory.read())
        self._body.write(data)
        self._size_bytes += len(data)

    def upload(self) -> Upload:
        self._body.seek(0)
        return Upload(self._filename, self._content_type, self._body, self._size_bytes)

    def close(self) -> None:
        with suppress(OSError):  # on a full disk, closing tries once more to write what could not be written
            self._body.close()


class _FormReceiver:
    """What the parser calls: it collects the parts and counts them against the limits."""

    def __init__(self, limits: FormLimits, share: BodyShare) -> None:
        self.limits = limits
        self._share = share
        self._files = 0
        self._texts: dict[str, list[bytearray]] = {}
        self._spools: dict[str, list[_Spool]] = {}
        self._parts = 0
        self._text_bytes = 0
        self._complete = False
        self._name = ""
        self._headers: dict[bytes, bytes] = {}
        self._header_name = b""
        self._header_value = b""
        self._sink: _Spool | bytearray = bytearray()

    def part_begin(self) -> None:
        self._parts += 1
        if self._parts > self.limits.parts:
            raise InvalidRequest(f"the form has more than {self.limits.parts} fields")
        self._headers = {}

    def header_begin(self) -> None:
        self._header_name = self._header_value = b""

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def header_end(self) -> None:
        self._headers[self._header_name.lower()] = self._header_value

    def headers_finished(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        kind, options = _parameters(disposition)
        if kind != b"form-data" or not options.get(b"name"):
            raise InvalidRequest("the form is malformed: a part has no Content-Disposition: form-data with a name")
        try:
            self._name = options[b"name"].decode()
        except UnicodeDecodeError as exc:
            raise InvalidRequest("the form is malformed: the name of a field is not UTF-8") from exc
        if self._name in self.limits.file_fields:
            self._count_file()
            content_type = _header_text(self._headers.get(b"content-type"))
            spool = _Spool(_filename(disposition, options), content_type, self._share)
            self._spools.setdefault(self._name, []).append(spool)
            self._sink = spool
        else:
            text = bytearray()
            self._texts.setdefault(self._name, []).append(text)
            self._sink = text

    def part_data(self, data: bytes, start: int, end: int) -> None:
        match self._sink:
            case _Spool() as spool:
                spool.write(data[start:end])
            case bytearray() as text:
                self._text_bytes += end - start
                if self._text_bytes > self.limits.text_bytes:
                    limit = f"the limit of {self.limits.text_bytes} bytes for the text of a form"
                    raise TooLarge(f"{self._name}: it goes over {limit}", param=self._name)
                text += data[start:end]

    def _count_file(self) -> None:
        """Refuse a file too many as soon as its headers have come, before anything of it is kept."""
        self._files += 1
        if self._files > self.limits.files:
            wanted = "one audio file is wanted" if self.limits.files == 1 else f"at most {self.limits.files} are taken"
            raise InvalidRequest(f"{self._name}: {wanted}, and more came", param=self._name)

    def end(self) -> None:
        self._complete = True

    def form(self) -> Form:
        if not self._complete:
            raise InvalidRequest("the form is cut: it ends before its closing boundary")
        return Form(
            {name: [bytes(text) for text in texts] for name, texts in self._texts.items()},
            {name: [spool.upload() for spool in spools] for name, spools in self._spools.items()},
            self._share,
        )

    def close(self) -> None:
        for spools in self._spools.values():
            for spool in spools:
                spool.close()


def _parser(request: Request, receiver: _FormReceiver) -> MultipartParser:
    if media_type(request.headers) != "multipart/form-data":
        raise UnsupportedMediaType("the body must be a form, with the content type multipart/form-data")
    _, options = _parameters(request.headers["content-type"].encode("latin-1"))
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidRequest("the content type multipart/form-data lacks its boundary")
    try:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": receiver.part_begin,
                "on_header_begin": receiver.header_begin,
                "on_header_field": receiver.header_field,
                "on_header_value": receiver.header_value,
                "on_header_end": receiver.header_end,
                "on_headers_finished": receiver.headers_finished,
                "on_part_data": receiver.part_data,
                "on_end": receiver.end,
            },
            max_header_count=receiver.limits.headers,
            max_header_size=receiver.limits.header_bytes,
        )
    except FormParserError as exc:
        raise _malformed(exc) from exc


def _parameters(header: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """The value of a header and its parameters; raises InvalidRequest for more of them than anybody sends."""
    if header.count(b";") > MAX_PARAMETERS:
        raise InvalidRequest(f"the form is malformed: a header has more than {MAX_PARAMETERS} parameters")
    return parse_options_header(header)


def _feed(parser: MultipartParser, chunk: bytes) -> None:
    try:
        parser.write(chunk)
    except FormParserError as exc:
        raise _malformed(exc) from exc


def _malformed(fault: FormParserError) -> InvalidRequest:
    said = str(fault)
    return InvalidRequest(f"the form is malformed: {said[:1].lower()}{said[1:]}")


def _as_text(name: str, raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as exc:
        raise InvalidRequest(f"{name}: the text is not UTF-8", param=name) from exc
    if "\0" in text:
        raise InvalidRequest(f"{name}: a text must not hold a NUL character", param=name)
    return text


def _filename(disposition: bytes, options: Mapping[bytes, bytes]) -> str | None:
    """The plain filename; without one the extended one, which RFC 7578 forbids and some clients send alone.

    One that cannot be read is none: nothing is done with it but to tell it again.
    """
    if plain := options.get(b"filename"):
        return _header_text(plain)
    header = Message()
    header["content-disposition"] = disposition.decode("latin-1")
    try:
        return header.get_filename() or None
    except ValueError:  # a charset that no text is in, such as idna; the number of a piece with thousands of digits
        return None


def _header_text(raw: bytes | None) -> str | None:
    return raw.decode(errors="replace") if raw else None
