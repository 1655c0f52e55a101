"""How much memory models were seen to take at most, kept in a file between starts. It measures nothing itself."""

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from antiphon.runtime.hosts.crew import Crew
from antiphon.vocabulary.spec import ModelSpec

log = logging.getLogger(__name__)

PEAKS_FILE = "memory-peaks.json"
MAX_PEAKS = 1000
"""How many models are remembered; the one learned of first is forgotten first."""


class PeakMemory:
    """The highest use of each model. Without a path, or where the file's folder is missing, nothing is kept.

    A file that is missing or broken is as good as an empty one. Units: bytes.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._peaks = {} if path is None else _read(path)
        self._writer: Crew | None = None

    def of(self, spec: ModelSpec) -> int:
        """The most that this model has taken; 0 where it was never measured as it is now."""
        return self._peaks.get(_key(spec), 0)

    def learn(self, spec: ModelSpec, used_bytes: int) -> None:
        """Remember a measurement, if it is the highest."""
        key = _key(spec)
        if used_bytes <= self._peaks.get(key, 0):
            return
        self._peaks[key] = used_bytes
        while len(self._peaks) > MAX_PEAKS:
            del self._peaks[next(iter(self._peaks))]
        if self._path is not None and self._path.parent.is_dir():
            self._writer = self._writer or Crew("antiphon-peaks")
            self._writer.post(partial(_write, self._path, dict(self._peaks)))

    def close(self) -> None:
        """Let the writer end after what it has to write."""
        if self._writer is not None:
            self._writer.stop()
            self._writer = None


def _key(spec: ModelSpec) -> str:
    """What the memory of a model depends on, its files' size and time included, as a digest."""
    try:
        found = Path(spec.path).stat()
        files = [found.st_size, found.st_mtime_ns]
    except OSError:
        files = []
    options = [spec.load_options, spec.session_options]
    how = [spec.device, spec.slots, spec.threads_setting]
    told = [spec.family, spec.path, spec.task, spec.mode, *how, *options, *files]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, int]:
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {key: peak for key, peak in kept.items() if type(peak) is int and peak > 0}


def _write(path: Path, peaks: Mapping[str, int]) -> None:
    """Replace the file whole; one that cannot be written is no error, only nothing is kept."""
    name = None
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=".memory-peaks-", delete=False) as draft:
            name = draft.name
            json.dump(peaks, draft)
        Path(name).replace(path)
    except OSError as fault:
        log.warning("what models take in memory could not be kept: %s", fault.strerror)
        if name is not None:
            with suppress(OSError):
                Path(name).unlink()
