"""One more way into the server: what a listener is given, and what it owes. It knows no protocol and no configuration.

A kind of listener is a class that is made with its options, a mapping, and fulfils `Listener`. It is found by its entry
point in the group `antiphon.listeners`. It raises ConfigError for options that it does not understand.

The duty: the runtime, with its models and its workers, is destroyed once every listener's `serve` has returned, and not
before. So `serve` returns only when nothing of its own can call the application any more: its callers are stopped, the
calls that were under way have ended, and the tasks and threads that made them are joined.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

AsgiMessage: TypeAlias = MutableMapping[str, Any]  # ASGI's own type: what a key holds depends on the message
AsgiApp: TypeAlias = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """How long a peer may keep a connection busy, how much it may say at once, and how many may come; 0 is "no limit".

    `header_timeout_s` runs from the first byte of a request, or from the connection, to the end of its headers,
    whatever drips meanwhile. `body_timeout_s` and `send_timeout_s` are the longest without a byte of progress while a
    body arrives or an answer is taken; besides, a body must bring `min_body_bytes_per_s` on average over each
    `body_timeout_s`. `keep_alive_s` is how long a connection may lie idle between two requests. `max_message_bytes` is
    the longest message of a WebSocket.
    """

    header_timeout_s: float = 20.0
    body_timeout_s: float = 30.0
    min_body_bytes_per_s: int = 4096
    send_timeout_s: float = 30.0
    keep_alive_s: float = 75.0
    max_connections: int = 1000
    max_message_bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StopOrder:
    """How the server tells its listeners to end, in two steps; both stay set.

    `begun`: take no more callers, refuse what still comes on open connections, let go of peers that stand still, and
    let the calls under way go on. `cut`: those have had their time, so break them off.
    """

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    cut: asyncio.Event = field(default_factory=asyncio.Event)


class Ledger(Protocol):
    """Where every request is entered, whoever answers it; the application itself is entered already."""

    def around(self, app: AsgiApp) -> AsgiApp:
        """The same application, with its requests entered."""
        ...

    def turned_away(self, status: int, reason: str, *, is_request: bool) -> str | None:
        """A listener answers this itself; the result is the request's id, to be sent with it.

        `reason` is the code of the error. What is no `is_request` belongs to a request that is entered already.
        """
        ...


class NoLedger:
    """Enters nothing."""

    def around(self, app: AsgiApp) -> AsgiApp:
        """As it is."""
        return app

    def turned_away(self, status: int, reason: str, *, is_request: bool) -> str | None:
        """Forget it."""
        del status, reason, is_request
        return None


@dataclass(frozen=True, slots=True)
class Served:
    """What a listener serves: the whole HTTP application, with its limits, errors and keys, to be called in process."""

    app: AsgiApp
    limits: PeerLimits
    stop: StopOrder
    ledger: Ledger = field(default_factory=NoLedger)


@dataclass(frozen=True, slots=True)
class HouseRules:
    """What this server asks of strangers: one of the keys, if there are any, and nothing of anybody if `insecure`."""

    api_keys: tuple[str, ...] = field(default=(), repr=False)
    insecure: bool = False


@runtime_checkable
class Unguarded(Protocol):
    """A listener whose protocol has no way to ask a caller for a key: it keeps the server's rules by other means."""

    def heed(self, rules: HouseRules) -> None:
        """Learn the rules, before `open`. Either raises ConfigError where they cannot be kept."""
        ...


@runtime_checkable
class Listener(Protocol):
    """One way in; it is opened once and served once."""

    def open(self) -> str:
        """Take the address and return it, to be told to people; who connects now waits until `serve`.

        Raises ConfigError, in one line, when the address cannot be had: the server then does not start.
        """
        ...

    async def serve(self, served: Served) -> None:
        """Serve until `served.stop` says so, then fulfil the duty above; give the address back, however it ends.

        An exception, or a return before the stop, stops the whole server in order.
        """
        ...

    def close(self) -> None:
        """Give back the address of a listener that was opened and is not served after all."""
        ...
