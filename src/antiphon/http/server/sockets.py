"""Sockets that listen: where a server is bound, and what its address is called."""

import socket

from antiphon.vocabulary.errors import ConfigError

BACKLOG = 2048
"""How many connections the kernel keeps for us until they are accepted."""


def bind(host: str, port: int) -> socket.socket:
    """Bind and listen, port 0 being any free one; raises ConfigError where that is not possible."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error}") from error


def address_of(bound: socket.socket, *, secure: bool = False) -> str:
    """The base URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
