"""Where audio may come from when a request does not carry it as a file: base64, or a path under an allowed folder."""

import base64
import binascii
import errno
import io
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from antiphon.vocabulary.errors import Forbidden, InvalidRequest


def from_base64(text: str, param: str) -> BinaryIO:
    """Read base64 as a file; raises InvalidRequest."""
    try:
        return io.BytesIO(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(f"{param} is no base64", param=param) from error


def from_path(path: str, allowed_roots: Sequence[str], param: str) -> BinaryIO:
    """Open a regular file under one of the roots, symbolic links resolved first.

    Raises Forbidden, in the same words whether or not there is such a file: an answer must not tell what exists. A
    device or a pipe is refused without waiting for it.
    """
    refusal = Forbidden(f"{param}: there is no file that may be read at this path", param=param)
    try:
        real = Path(path).resolve(strict=True)
        if any(real.is_relative_to(Path(root).resolve()) for root in allowed_roots):
            return open_regular(real)
    except (OSError, ValueError, RuntimeError) as error:
        raise refusal from error
    raise refusal


def open_regular(path: Path) -> BinaryIO:
    """Open a file that is no folder, device or pipe, and whose last name is no link; raises OSError at once."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file")
