"""A server that is told to stop, seen from outside: its port, connections from before, and what it leaves behind."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import httpx
import psutil

from conformance_client import HANG_GUARD_S, eventually
from server_process import ServerProcess


def address_of(url: str) -> tuple[str, int]:
    """Host and port of a server's URL."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@contextmanager
def kept_alive(url: str) -> Iterator[httpx.Client]:
    """A client with one connection, which is open; it is used for one request after another."""
    limits = httpx.Limits(max_connections=1, keepalive_expiry=None)
    with httpx.Client(base_url=url, timeout=HANG_GUARD_S, limits=limits) as client:
        assert client.get("/health").status_code == 200
        yield client


def begin_stop(server: ServerProcess, number: signal.Signals = signal.SIGTERM, pid: int | None = None) -> None:
    """Send the first stop signal and wait until the server has heeded it: its port is closed.

    `pid` is the server's where a launcher stands between.
    """
    os.kill(pid or server.process.pid, number)
    eventually(lambda: accepts(server.url), lambda open_: not open_, "a closed port")


def accepts(url: str) -> bool:
    """Whether a connection is accepted now."""
    try:
        with closing(socket.create_connection(address_of(url), timeout=HANG_GUARD_S)):
            return True
    except (ConnectionRefusedError, ConnectionResetError):  # reset: the port closed in the middle of it
        return False


def connected_ports(pid: int) -> set[int]:
    """The clients' ports of all connections that the process has open, also those whose client has left."""
    connections = psutil.Process(pid).net_connections("tcp")
    return {it.raddr.port for it in connections if it.raddr}


def wait_disconnected(server: ServerProcess, *ports: int) -> None:
    """Wait until the server has let go of the connections from these ports, whatever their clients do."""
    eventually(lambda: connected_ports(server.process.pid) & set(ports), lambda open_: not open_, "a cut connection")


def assert_ended(server: ServerProcess) -> None:
    """The server comes to its end, with the exit code 0; nothing is left of it, and nothing went wrong inside."""
    assert server.process.wait(HANG_GUARD_S) == 0, server.log.read_text()
    assert remains_of(server) == []
    assert "Traceback" not in server.log.read_text()


def remains_of(server: ServerProcess) -> list[str]:
    """What a server that has ended left behind: processes, its port, temporary files."""
    left = [f"process {it.pid} {it.name()}" for it in psutil.process_iter() if _temp_of(it) == str(server.temp)]
    left += [f"file {it.name}" for it in server.temp.iterdir()]
    if accepts(server.url):
        left.append(f"port {address_of(server.url)[1]}")
    return left


def _temp_of(process: psutil.Process) -> str | None:
    """Where a process has its temporary files; its own folder marks a server and whatever it has started."""
    try:
        return process.environ().get("TMPDIR")
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
        return None
