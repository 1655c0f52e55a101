"""Processes of `antiphon` that cost no imports: each is forked from one interpreter that has done them all.

From the fork on each is as if it had been started alone: its own arguments, folder, environment, stderr and end. Only
its modules are not cleared when it ends: that would copy all that it shares. It knows no server and no configuration.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Self

from antiphon.runtime.permanent import permanent_imports

_MESSAGE_BYTES = 256 * 1024
"""No environment with its arguments is as long."""


class Nursery:
    """The interpreter that processes are forked from; `start` may be called wherever `subprocess.Popen` would be."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = f"import server_nursery; server_nursery.nurse({theirs.fileno()})"
        path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[theirs.fileno()], env=environment, stdout=subprocess.DEVNULL
        )
        theirs.close()

    def start(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], module: str = "antiphon.cli"
    ) -> "Forked":
        """Fork a process for `antiphon ARGUMENTS`; the first item of the command is not looked at.

        It runs the `main` of the module, which is the command's unless it is said.
        """
        read_stderr, stderr = os.pipe()
        read_status, status = os.pipe()
        order = {"module": module, "arguments": ["antiphon", *command[1:]], "cwd": str(cwd), "env": dict(env)}
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], [stderr, status])
        finally:
            os.close(stderr)
            os.close(status)
        return Forked(read_stderr, read_status)

    def close(self) -> None:
        """Let the interpreter end; the processes go on."""
        self._socket.close()
        self._process.wait()


@cache
def shared_nursery() -> Nursery:
    """The one that all tests of this process have their servers from."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


class Forked:
    """As much of `subprocess.Popen` as a test of a server needs."""

    def __init__(self, stderr: int, status: int) -> None:
        self.stderr = os.fdopen(stderr, encoding="utf-8")
        self.returncode: int | None = None
        self._status = os.fdopen(status, encoding="utf-8")
        self.pid = int(self._status.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self.stderr.close()
        self._status.close()

    def poll(self) -> int | None:
        """The exit code, or None while the process runs; minus a signal's number where that ended it."""
        return self.returncode if self.returncode is not None or not self._has_ended(0) else self.wait()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code; raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = int(self._status.readline())
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to a process that still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and nobody has said how yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once; harmless when it has ended."""
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self._status], [], [], timeout)[0])


def nurse(fileno: int) -> None:
    """Import all that a server does, then fork for each order until nobody can give one."""
    status: list[int] = []
    atexit.register(_end_with, status)  # before any other, so that it is called after them
    with permanent_imports():  # or a collection in each process would copy all that they share
        import uvloop  # noqa: F401 (as `antiphon serve` does once it runs)

        import antiphon.bootstrap
        import antiphon.cli
        import antiphon.testing
        import antiphon.validation.server  # noqa: F401
        from antiphon.http.app import HttpLimits, Services, create_app

        create_app(
            Services(*[None] * len(fields(Services))), HttpLimits(0, 0, 0)
        )  # what it looks up is known afterwards
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a watcher ended
    with socket.socket(fileno=fileno) as orders:
        while True:
            order, descriptors, _, _ = socket.recv_fds(orders, _MESSAGE_BYTES, 2)
            if not order:
                return
            if not os.fork():
                break
            for descriptor in descriptors:
                os.close(descriptor)
    _watch(json.loads(order), *descriptors)
    try:
        _become(json.loads(order), descriptors[0])
    except SystemExit as end:
        status.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except BaseException:
        status.append(1)
        raise
    status.append(0)


def _end_with(status: Sequence[int]) -> None:
    """Leave with the first of these, if there is one, when threads have ended and callbacks been made."""
    if status:
        sys.stderr.flush()
        os._exit(status[0])


def _watch(order: Mapping[str, object], stderr: int, status: int) -> None:
    """Fork the process that was ordered, tell its number, and, when it has ended, how."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        os.close(status)
        return
    os.close(stderr)
    os.write(status, f"{pid}\n".encode())
    _, ended = os.waitpid(pid, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def _become(order: Mapping[str, object], stderr: int) -> None:
    """Be the process from here on."""
    os.dup2(stderr, 2)
    os.close(stderr)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    tempfile.tempdir = None  # the environment says where
    sys.path[:0] = filter(None, order["env"].get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = order["arguments"]
    import_module(order["module"]).main()
