"""Paths of a configuration, from what was written to absolute ones that exist; it opens nothing.

Every ValueError here is the rest of a sentence that begins with the field's name.
"""

import os
import stat
from pathlib import Path


def absolute_path(base: Path, given: str) -> str:
    """The absolute path of something that may or may not exist; raises ValueError for what is no path."""
    return str(_resolved(base, given))


def existing_path(base: Path, given: str, *, tells_where: bool = True) -> str:
    """The absolute path of an existing file or folder.

    Raises ValueError with the path that was looked at, or with what was given where nobody is to be told more.
    """
    path = _resolved(base, given)
    shown = str(path) if tells_where else given
    if _mode(path, shown) is None:
        raise ValueError(f"wanted an existing file or folder; found nothing at {shown!r}")
    return str(path)


def folder_path(base: Path, given: str, *, must_exist: bool) -> str:
    """The absolute path of a folder that exists, or that may still be made; raises ValueError for anything else."""
    path = _resolved(base, given)
    mode = _mode(path, str(path))
    if mode is None and must_exist:
        raise ValueError(f"wanted an existing folder; found nothing at {str(path)!r}")
    if mode is not None and not stat.S_ISDIR(mode):
        raise ValueError(f"wanted a folder; found another file at {str(path)!r}")
    return str(path)


def _resolved(base: Path, given: str) -> Path:
    """Join and tidy a path as the kernel would walk it.

    Its last name stays as it was written even when it is a link: engines look for companions by that name, and a cache
    of models may link `voice.onnx` to a file that is named by its checksum.
    """
    if not given or "\0" in given:
        raise ValueError(f"wanted a path; found {given!r}")
    joined = base / given
    try:
        if joined.name in ("", ".."):
            return Path(os.path.realpath(joined))
        return Path(os.path.realpath(joined.parent)) / joined.name
    except UnicodeEncodeError as error:
        raise ValueError(f"wanted a path that this locale can write; found {given!r}") from error


def _mode(path: Path, shown: str) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeEncodeError as error:
        raise ValueError(f"wanted a path that this locale can write; found {shown!r}") from error
    except OSError as error:
        raise ValueError(f"cannot look at {shown!r}: {error.strerror}") from error
