"""The files of the page, ready to be sent. It knows no route, and nothing of what they do."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""By the end of a name: what the machine's own table says of them differs from one to the next."""

INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file. `name` is its path below the page's folder, with slashes; `digest` is of its content, in hex."""

    name: str
    content: bytes
    media_type: str
    digest: str


@cache
def page_files() -> tuple[PageFile, ...]:
    """All files of the page, by name. Some ten, of a few kilobytes: they are read once and kept."""
    return tuple(sorted(_below(files(__package__) / "assets", ""), key=lambda file: file.name))


def _below(folder: Traversable, prefix: str) -> Iterator[PageFile]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _below(entry, f"{name}/")
        else:
            content = entry.read_bytes()
            yield PageFile(name, content, _MEDIA_TYPES[name.rpartition(".")[2]], sha256(content).hexdigest())
