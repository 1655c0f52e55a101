"""A file that lines are appended to, off the event loop, and its predecessors. It knows nothing of what the lines say.

Blocks of whole lines go to a thread of its own. A disk that is full or gone costs no request anything: it is said once
in the log, nothing is written any more, and the file ends with a whole line.
"""

import logging
import os
import stat
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from antiphon.runtime.hosts.crew import Crew
from antiphon.vocabulary.errors import ConfigError

log = logging.getLogger(__name__)

KEPT_FILES = 4
"""How many predecessors stay, as FILE.1 (the last one) to FILE.4."""
MAX_PENDING_BYTES = 64 * 1024 * 1024
"""What may wait for a disk that is slow; one that is slower still is given up."""

_MODE = 0o600


class LineFile:
    """Appends to one file. `open` it before anything else; `what` is what it is in words, "the journal"."""

    def __init__(self, path: Path, what: str, kept: int = KEPT_FILES) -> None:
        self.failed = False
        """Whether it was given up; nothing is written from then on."""
        self._path = path
        self._what = what
        self._kept = kept
        self._crew: Crew | None = None
        self._file = -1
        self._posted_bytes = 0
        self._written_bytes = 0  # the thread's

    def open(self) -> None:
        """Begin a new file; one that is there is kept as FILE.1. Raises ConfigError where that is not possible."""
        try:
            self._require_plain()
            self._begin()
        except OSError as error:
            raise self._refusal(error) from error
        self._crew = Crew("antiphon-lines")

    def try_out(self) -> None:
        """Raise ConfigError where `open` would; it makes a file that has no name, and leaves nothing."""
        try:
            self._require_plain()
            with tempfile.TemporaryFile(dir=self._path.parent):
                pass
        except OSError as error:
            raise self._refusal(error) from error

    def append(self, lines: bytes, *, anew: bool = False) -> None:
        """Have these whole lines written after all that came before, `anew` as the first ones of a new file."""
        if self.failed or self._crew is None:
            return
        self._posted_bytes += len(lines)
        if self._posted_bytes - self._written_bytes > MAX_PENDING_BYTES:
            self._give_up("the disk is too slow")
            return
        self._crew.post(partial(self._write, lines, anew=anew))

    async def close(self) -> None:
        """Return once all is written; where it was given up there is nothing to wait for, and the disk may hang."""
        crew, self._crew = self._crew, None
        if crew is None:
            return
        if self.failed:
            crew.post(self._end)
        else:
            await crew.call(self._end)
        crew.stop()

    # In the thread

    def _write(self, lines: bytes, *, anew: bool) -> None:
        try:
            if not self.failed:
                if anew:
                    self._end()
                    self._begin()
                _write_whole(self._file, lines)
        except OSError as error:
            self._give_up(error.strerror or str(error))
        self._written_bytes += len(lines)

    def _begin(self) -> None:
        names = [self._path, *(Path(f"{self._path}.{number}") for number in range(1, self._kept + 1))]
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            with suppress(FileNotFoundError):
                newer.replace(older)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)

    def _require_plain(self) -> None:
        """A device or a pipe must not be renamed."""
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(self._path.lstat().st_mode):
                raise ConfigError(f"{self._what} cannot be written to {self._path}: it is no plain file")

    def _refusal(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self._what} cannot be written to {self._path}: {error.strerror}")

    def _end(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _give_up(self, why: str) -> None:
        self.failed = True
        log.warning("%s in %s ends here, and the server goes on without: %s", self._what, self._path, why)


def _write_whole(file: int, lines: bytes) -> None:
    """Write all of it, or none: what a full disk has taken of it is cut off again."""
    size = os.fstat(file).st_size
    rest = memoryview(lines)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise
