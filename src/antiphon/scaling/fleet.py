"""What the front asks of the replicas, whoever runs them. It knows neither Ray nor HTTP."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

TOKEN_HEADER = "x-antiphon-front"  # noqa: S105 (its name, not a token)
"""Where the front proves itself to a replica: whoever cannot is not answered there."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One whole server: its name, the base URL at which the front reaches it, and the address of its node."""

    name: str
    url: str
    node: str


class Fleet(Protocol):
    """All replicas of one server."""

    @property
    def size(self) -> int:
        """How many there are to be."""
        ...

    @property
    def token(self) -> str:
        """What proves the front to each of them."""
        ...

    def held(self, model: str) -> AbstractAsyncContextManager[Replica]:
        """The replica for a request for this model, held for the length of the block: it is not stopped before.

        Raises ServerBusy where there is none.
        """
        ...

    async def present(self) -> Sequence[Replica]:
        """Those that answer now, by name."""
        ...

    def refuse(self) -> None:
        """The end begins: each is to begin its own."""
        ...

    def cut(self) -> None:
        """The end is now: each is to give up what it has not finished."""
        ...
