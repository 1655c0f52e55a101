"""What a connection may take: times and numbers, as the listener keeps them. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """How long a peer may keep a connection busy, and how many may come. Units: seconds; 0 is "no limit" each time.

    `header_timeout_s` runs from the first byte of a request, or from the connection, to the end of its headers,
    whatever drips meanwhile. `body_timeout_s` and `send_timeout_s` are the longest without a byte of progress while a
    body arrives or an answer is taken. `keep_alive_s` is how long a connection may lie idle between two requests.
    """

    header_timeout_s: float = 20.0
    body_timeout_s: float = 30.0
    send_timeout_s: float = 30.0
    keep_alive_s: float = 5.0
    max_connections: int = 1000
