"""What is sent at a server: the bytes of one connection, and how it ends. It knows no answer."""

from collections.abc import Iterable
from dataclasses import dataclass

EDGE = b"fuzzEdge"
FORM_TYPE = b"multipart/form-data; boundary=" + EDGE


@dataclass(frozen=True, slots=True)
class Shot:
    """`data` goes over a connection of its own, in as few pieces as it can.

    Whoever `stays` reads until the server closes, or until `marker` has come; whoever does not leaves at once.
    `is_whole` says that it is one request, to which one answer is due. `to_wyoming` says where it goes.
    """

    data: bytes
    stays: bool = True
    is_whole: bool = False
    marker: bytes | None = None
    to_wyoming: bool = False


def head(method: bytes, target: bytes, *fields: bytes) -> bytes:
    """The head of a request that is the last of its connection."""
    return b"\r\n".join(
        (b"%s %s HTTP/1.1" % (method, target), b"Host: localhost", b"Connection: close", *fields, b"", b"")
    )


def post(target: bytes, kind: bytes, body: bytes) -> Shot:
    """A whole request with a body."""
    return Shot(
        head(b"POST", target, b"Content-Type: " + kind, b"Content-Length: %d" % len(body)) + body, is_whole=True
    )


def part(name: bytes, content: bytes, filename: bytes | None = None) -> bytes:
    """A part of a form that is in order."""
    named = b"" if filename is None else b'; filename="%s"' % filename
    return b'--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (EDGE, name, named, content)


def form(parts: Iterable[bytes]) -> bytes:
    """Parts as a whole form."""
    return b"".join(parts) + b"--%s--\r\n" % EDGE
