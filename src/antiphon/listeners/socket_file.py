"""A socket that listens on a file: made for its owner alone, taken over from a dead server, given back. No protocol."""

import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError

BACKLOG = 2048
"""How many connections the kernel keeps for us until they are accepted."""

_OWNER_ALONE = 0o600


class SocketFile:
    """A bound, listening Unix socket and its file, which goes when it is removed or closed.

    A socket file that no process listens on any more is replaced. Raises ConfigError for one that is in use, for any
    other file at `path`, and where no socket can be made.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._identity: tuple[int, int] | None = None
        with ExitStack() as on_failure:
            on_failure.callback(self.socket.close)
            try:
                self._identity = self._bind()
            except OSError as error:
                raise ConfigError(f"cannot listen on {path!r}: {error.strerror or error}") from error
            on_failure.pop_all()

    def remove(self) -> None:
        """Remove the file once, unless another server has put its own in its place; the socket still listens."""
        if self._identity is None:
            return
        with suppress(FileNotFoundError):
            if _identity(self._path) == self._identity:
                self._path.unlink()
        self._identity = None

    def close(self) -> None:
        """Remove the file and stop listening; may be called again."""
        self.remove()  # first: the kernel gives no other file its number while the socket is open
        self.socket.close()

    def _bind(self) -> tuple[int, int]:
        os.fchmod(self.socket.fileno(), _OWNER_ALONE)  # before it is bound: its file never has another mode
        _clear_the_way(self._path)
        self.socket.bind(str(self._path))
        self.socket.listen(BACKLOG)
        return _identity(self._path)


def _clear_the_way(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"cannot listen on {str(path)!r}: another file is there")
    if _is_in_use(path):
        raise ConfigError(f"cannot listen on {str(path)!r}: another server does")
    path.unlink(missing_ok=True)


def _is_in_use(path: Path) -> bool:
    """Whether somebody listens: the kernel refuses a connection only where nobody does, also if the queue is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True
    return True


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
