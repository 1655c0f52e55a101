"""Paths of a configuration, from what was written to absolute ones that exist; it opens nothing.

Every ValueError here is the rest of a sentence that begins with the field's name.
"""

import os
import stat
from pathlib import Path


def absolute_path(base: Path, given: str) -> str:
    """The absolute path of something that may or may not exist; raises ValueError for what is no path."""
    return str(_resolved(base, given))


def existing_path(base: Path, given: str) -> str:
    """The absolute path of an existing file or folder; raises ValueError with the path that was looked at."""
    path = _resolved(base, given)
    if _mode(path) is None:
        raise ValueError(f"wanted an existing file or folder; found nothing at {str(path)!r}")
    return str(path)


def folder_path(base: Path, given: str, *, must_exist: bool) -> str:
    """The absolute path of a folder that exists, or that may still be made; raises ValueError for anything else."""
    path = _resolved(base, given)
    mode = _mode(path)
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


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeEncodeError as error:
        raise ValueError(f"wanted a path that this locale can write; found {str(path)!r}") from error
    except OSError as error:
        raise ValueError(f"cannot look at {str(path)!r}: {error.strerror}") from error
