"""The voice library: a folder whose recordings are voices, each by its file's name; it decodes nothing."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from antiphon.service.audio_source import from_path
from antiphon.vocabulary.errors import Forbidden, InvalidRequest

SUFFIXES = frozenset(
    {".wav", ".w64", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".mp4", ".aac", ".aif", ".aiff", ".au", ".caf"}
    | {".mka", ".webm"}
)
"""How the names of recordings end, in any case; what is in them is found out when they are decoded."""

MAX_FILES = 10_000
"""How many of the folder's files are looked at."""

MAX_TEXT_BYTES = 64 * 1024
"""How much of a recording's text is read."""


@dataclass(frozen=True, slots=True)
class Recording:
    """An open file with somebody's voice, and what is said in it where that is known. Close its body."""

    body: BinaryIO
    text: str | None = None


class VoiceLibrary:
    """The recordings of one folder; without a folder there are none.

    The folder is read anew each time, so that what is put there is a voice at once. Links that lead out of it, and what
    is no regular file, are not part of it. `NAME.txt` beside a recording is what is said in it.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        """The voices that there are, in order."""
        return tuple(sorted({path.stem for path in self._candidates() if self._holds(path)}))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def open(self, name: str, param: str = "voice_ref") -> Recording:
        """Open a voice's recording; raises InvalidRequest for a name that no file here has."""
        path = self._find(name)
        with suppress(Forbidden):  # it has gone since, or something else has taken its place
            if path is not None and self._folder is not None:
                text = self._text_of(path)  # first: what goes wrong with it leaves no recording open
                return Recording(from_path(str(path), [self._folder], param), text)
        known = ", ".join(self.names()[:20]) or "none"
        raise InvalidRequest(f"there is no voice {name[:80]!r} in the voice library; it has {known}", param=param)

    def _find(self, name: str) -> Path | None:
        """Look the name up among those that there are: a path is never made of it."""
        found = sorted(path for path in self._candidates() if path.stem == name)
        return next((path for path in found if self._holds(path)), None)

    def _candidates(self) -> Iterator[Path]:
        if self._folder is None:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in islice(entries, MAX_FILES):
                path = Path(entry.path)
                if path.suffix.lower() in SUFFIXES and path.stem.isprintable() and not path.stem.startswith("."):
                    yield path

    def _holds(self, path: Path) -> bool:
        """Whether this is a regular file of the folder, links followed."""
        try:
            return path.is_file() and path.resolve().is_relative_to(Path(self._folder or "").resolve())
        except (OSError, RuntimeError):
            return False

    def _text_of(self, path: Path) -> str | None:
        """What is said in a recording; None where there is no text that can be read."""
        text = str(path.with_suffix(".txt"))
        with suppress(Forbidden, OSError), from_path(text, [str(self._folder)], "voice_ref") as file:
            return file.read(MAX_TEXT_BYTES).decode("utf-8", "replace").strip() or None
        return None


NO_LIBRARY = VoiceLibrary()
"""No folder, no voices."""
