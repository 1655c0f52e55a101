"""An answer in bytes, whole and the last one of its connection, for what uvicorn's cycle does not answer."""

from collections.abc import Iterable

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

Fields = Iterable[tuple[bytes, bytes]]


def last_answer(response: Response, default_fields: Fields) -> bytes:
    """The response as it is sent, after which the connection is closed; `default_fields` go before its own."""
    fields = [*default_fields, *response.raw_headers, (b"connection", b"close")]
    return head(STATUS_LINE[response.status_code], fields) + bytes(response.body)


def head(status_line: bytes, fields: Fields) -> bytes:
    """The head of an answer; `status_line` has its line end."""
    return status_line + b"".join(name + b": " + value + b"\r\n" for name, value in fields) + b"\r\n"
