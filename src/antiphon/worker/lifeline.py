"""A worker's tie to the server: it never outlives it, and no signal that is meant for the server ends it before."""

import ctypes
import faulthandler
import os
import signal
import socket
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_MORE_OOM_SCORE = 300
_MAX_OOM_SCORE = 1000


def tie_to(parent: int) -> None:
    """End with the process `parent`, and with it alone; call it first.

    Source: prctl(2), PR_SET_PDEATHSIG. The kernel sends the signal when the *thread* ends that started us.
    """
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before the kernel knew that we want to hear of it
        os._exit(0)
    _offer_to_the_kernel()
    faulthandler.enable()


def socket_of(descriptor: int) -> socket.socket:
    """The socket that we were given; what we start ourselves does not get it, or our end would go unnoticed."""
    given = socket.socket(fileno=descriptor)
    given.set_inheritable(False)
    given.setblocking(True)
    return given


def _offer_to_the_kernel() -> None:
    """Where memory runs out, it is to end a worker and not the server. Source: proc(5), oom_score_adj."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "r+") as score:  # noqa: PTH123 (pathlib is slow to import)
        raised = min(_MAX_OOM_SCORE, int(score.read()) + _MORE_OOM_SCORE)
        score.seek(0)
        score.write(str(raised))
