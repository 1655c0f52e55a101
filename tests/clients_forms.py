"""Forms as clients put them together by hand: the file may stand before the fields, or say nothing of its type."""

from collections.abc import Iterator, Mapping

BOUNDARY = "--------------------------515890814546601021194782"
"""As form-data of Node makes them; that of `requests` is shorter."""


def form_of(
    fields: Mapping[str, str], file: tuple[str | None, bytes, str | None], *, file_first: bool = False
) -> tuple[str, bytes]:
    """The content type and the body of a form; `file` is its name, its bytes and its type, each as the part says it."""
    name, content, kind = file
    parts = [_part(f'name="{field}"', value.encode()) for field, value in fields.items()]
    named = 'name="file"' if name is None else f'name="file"; filename="{name}"'
    parts.insert(0 if file_first else len(parts), _part(named, content, kind))
    return f"multipart/form-data; boundary={BOUNDARY}", b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def pieces_of(body: bytes, size: int = 4096) -> Iterator[bytes]:
    """A body as it is read from a file: its whole length is nowhere said."""
    return (body[at : at + size] for at in range(0, len(body), size))


def _part(disposition: str, content: bytes, kind: str | None = None) -> bytes:
    typed = "" if kind is None else f"Content-Type: {kind}\r\n"
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n{typed}\r\n"
    return head.encode() + content + b"\r\n"
