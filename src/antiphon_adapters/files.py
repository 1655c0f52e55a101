"""Reads the small files of a model, which may come from anywhere: only regular ones, and only up to a size.

A FIFO in place of a file would block its reader for good, and a device has no end. Errors are a ConfigError that names
the file without its folder.
"""

import json
import os
import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

from antiphon.vocabulary.errors import ConfigError

T = TypeVar("T")

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""The largest file of settings, tokens or words that is read. The tokenizers of large models have 20 MiB at most."""


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file for reading; raises ConfigError for one that is missing or of another kind."""
    try:
        # Without waiting: to open a FIFO waits for a writer. Reading a regular file is not affected.
        opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except FileNotFoundError as error:
        raise ConfigError(f"{file.name} is missing") from error
    except OSError as error:
        raise ConfigError(f"{file.name} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise ConfigError(f"{file.name} is not a regular file")
    return opened


def require_regular(file: Path) -> Path:
    """Return the file that an engine will open by its name; raises ConfigError unless it is a regular one."""
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file.name} is not a regular file")
    return file


def read_text(file: Path, *, errors: str = "strict") -> str:
    """Read UTF-8 text. Raises ConfigError, also for text that is not UTF-8 under strict `errors`."""
    try:
        with open_regular(file) as opened:
            data = opened.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{file.name} cannot be read: {error.strerror}") from error
    if len(data) > MAX_TEXT_BYTES:
        raise ConfigError(f"{file.name} is larger than {MAX_TEXT_BYTES // 2**20} MiB")
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file.name} is not UTF-8 text") from error


def read_json(file: Path, kind: type[T]) -> T:
    """Read JSON that must hold an object (`dict`) or a list (`list`). Raises ConfigError."""
    try:
        value: object = json.loads(read_text(file))
    except ValueError as error:
        raise ConfigError(f"{file.name} is not JSON") from error
    except RecursionError as error:
        raise ConfigError(f"{file.name} is nested too deeply") from error
    if not isinstance(value, kind):
        raise ConfigError(f"{file.name} must hold {'an object' if kind is dict else 'a list'}")
    return value
