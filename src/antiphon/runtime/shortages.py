"""What the operating system has run out of, as an error that a client can act on: try again later."""

import errno
from collections.abc import Mapping

from antiphon.vocabulary.errors import OutOfResources

_SHORT_OF: Mapping[int, str] = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space",
    errno.ENOMEM: "memory",
}


def shortage_of(fault: BaseException) -> OutOfResources | None:
    """The shortage behind a fault, which may have been raised from it; None if it has another cause."""
    cause: BaseException | None = fault
    while cause is not None:
        missing = _SHORT_OF.get(cause.errno or 0) if isinstance(cause, OSError) else None
        if missing is not None:
            return OutOfResources(f"the server has run out of {missing}; try again later")
        cause = cause.__cause__
    return None
