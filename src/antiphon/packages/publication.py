"""Makes a finished folder visible under its name in one step, and the lock under which that happens.

It knows files and folders, nothing of packages.
"""

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


@contextmanager
def exclusive(lock: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `lock`; `on_wait` is called once before waiting for its holder, and may raise instead.

    The kernel lets go of the lock when its holder dies. The file stays: removing it would split later holders.
    """
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths atomically (renameat2, Linux 3.15); False where the system or the file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library without it
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def publish(folder: Path, target: Path, aside: Path, swap: Callable[[Path, Path], bool] = exchange) -> None:
    """Rename `folder` to `target`; what was there is then found at `folder` or at `aside`, for the caller to delete.

    All three are on one file system. A target that exists is swapped in one step; where `swap` says that this cannot
    be, the target is absent between two renames.
    """
    sync_folders(folder)
    if not os.path.lexists(target):
        folder.rename(target)
    elif not swap(folder, target):
        target.rename(aside)
        folder.rename(target)
    sync(target.parent)


def sync_folders(folder: Path) -> None:
    """Flush the entries of `folder` and of every folder below it to the disk."""
    for path, _, _ in os.walk(folder):
        sync(Path(path))


def sync(folder: Path) -> None:
    """Flush a folder's own entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
