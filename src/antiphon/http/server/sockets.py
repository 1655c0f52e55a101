"""Sockets that listen: where a server is bound, and what its address is called."""

import socket
from dataclasses import dataclass
from typing import cast

from antiphon.vocabulary.errors import ConfigError

BACKLOG = 2048
"""How many connections the kernel keeps for us until they are accepted."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A numeric address to listen on, as `socket.getaddrinfo` found it: for IPv6 with its flow and its zone.

    `name` is what it was asked for as, and what errors call it.
    """

    name: str
    family: int
    sockaddr: tuple[str, int] | tuple[str, int, int, int]

    @property
    def host(self) -> str:
        """The numeric address, without its zone."""
        return self.sockaddr[0]


def resolve(host: str, port: int) -> ListenAddress:
    """Find the address that a host means, without listening on it; port 0 is any free one. Raises ConfigError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error}") from error
    family, _, _, _, sockaddr = found[0]
    if not isinstance(sockaddr[0], str):  # CPython without IPv6 gives the raw bytes of such an address
        raise ConfigError(f"cannot listen on {host} port {port}: this Python has no IPv6")
    return ListenAddress(host, family, cast("tuple[str, int]", sockaddr))


def bind(host: str, port: int) -> socket.socket:
    """Resolve a host and listen on it; raises ConfigError if that is not possible."""
    return listen(resolve(host, port))


def listen(address: ListenAddress) -> socket.socket:
    """Bind and listen; raises ConfigError if that is not possible."""
    try:
        # The whole address: a link-local one without its zone is not valid.
        return socket.create_server(address.sockaddr, family=address.family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {address.name} port {address.sockaddr[1]}: {error}") from error


def address_of(bound: socket.socket, *, secure: bool = False) -> str:
    """The base URL of a bound socket; the zone of a link-local address is written as RFC 6874 has it."""
    host, port, *scoped = bound.getsockname()
    scheme = "https" if secure else "http"
    if ":" not in host:
        return f"{scheme}://{host}:{port}"
    zone = f"%25{socket.if_indextoname(scoped[1])}" if scoped[1] else ""
    return f"{scheme}://[{host}{zone}]:{port}"
