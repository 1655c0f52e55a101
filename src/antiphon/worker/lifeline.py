"""A worker's tie to the server: it never outlives it, and no signal that is meant for the server ends it before."""

import ctypes
import faulthandler
import os
import signal
import socket

_PR_SET_PDEATHSIG = 1


def tie_to(parent: int) -> None:
    """End with the process `parent`, and with it alone; call it first.

    Source: prctl(2), PR_SET_PDEATHSIG. The kernel sends the signal when the *thread* ends that started us.
    """
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before the kernel knew that we want to hear of it
        os._exit(0)
    faulthandler.enable()


def socket_of(descriptor: int) -> socket.socket:
    """The socket that we were given; what we start ourselves does not get it, or our end would go unnoticed."""
    given = socket.socket(fileno=descriptor)
    given.set_inheritable(False)
    given.setblocking(True)
    return given
