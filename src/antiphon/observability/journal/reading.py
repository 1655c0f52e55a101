"""A journal's file, read back and replayed; what is wrong with it is told with the lines around."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from antiphon.observability.journal.entries import VERSION, AnyEntry, Header, line_decoder
from antiphon.observability.journal.replay import ReplayedHouse
from antiphon.vocabulary.errors import ConfigError

_AROUND = 5
"""How many lines are shown before what is wrong, and after it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a file. `entries` happened again; `fault` is None where all did, else it begins with its line.

    `surroundings` are the lines around the fault, with their numbers. `cut` says that the last line was not whole.
    """

    entries: int
    models: int
    seconds: float
    cut: bool
    fault: str | None = None
    surroundings: tuple[str, ...] = ()


def replay_file(path: Path) -> Verdict:
    """Replay a file as far as it goes; raises ConfigError for one that cannot be read or is no journal."""
    try:
        with path.open("rb") as file:
            return _Reading(path, file).verdict()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


class _Reading:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._lines = _numbered_lines(file)
        self._before: deque[str] = deque(maxlen=_AROUND)
        self._models: set[str] = set()
        self._cut = False
        self._entries = 0
        self._began: float | None = None
        self._last = 0.0
        self._house = ReplayedHouse.of(self._header(path))

    def verdict(self) -> Verdict:
        for number, line in self._lines:
            if not line.endswith(b"\n"):
                self._cut = True
                break
            fault = self._fault_of(line)
            if fault is not None:
                return self._told(f"line {number}: {fault}", number, line)
            self._before.append(_shown(number, line))
        return self._told(None)

    def _header(self, path: Path) -> Header:
        _, line = next(self._lines, (1, b""))
        try:
            header = line_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is no journal: its first line is no head") from error
        if not isinstance(header, Header):
            raise ConfigError(f"{path} is no journal: its first line is no head")
        if header.version != VERSION:
            raise ConfigError(f"{path} is a journal of version {header.version}; this antiphon reads {VERSION}")
        return header

    def _fault_of(self, line: bytes) -> str | None:
        try:
            entry = line_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return f"no entry: {error}"
        if isinstance(entry, Header):
            return "a second head"
        fault = self._house.complaint_of(entry)
        if fault is None:
            self._count(entry)
        return fault if fault is None else f"{entry.model}: {fault}"

    def _count(self, entry: AnyEntry) -> None:
        self._entries += 1
        self._models.add(entry.model)
        self._began = entry.now if self._began is None else self._began
        self._last = entry.now

    def _told(self, fault: str | None, number: int = 0, line: bytes = b"") -> Verdict:
        seconds = 0.0 if self._began is None else self._last - self._began
        around: tuple[str, ...] = ()
        if fault is not None:
            later = [_shown(*it) for it in islice(self._lines, _AROUND)]
            around = (*self._before, _shown(number, line, "-> "), *later)
        return Verdict(self._entries, len(self._models), seconds, self._cut, fault, around)


def _numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    return enumerate(file, start=1)


def _shown(number: int, line: bytes, mark: str = "   ") -> str:
    return f"{mark}{number}: {line.rstrip().decode(errors='backslashreplace')}"
