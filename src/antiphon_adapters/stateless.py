"""What is alike in every session whose engine keeps nothing between requests; it knows no task and answers nothing."""

from typing import Generic, Self, TypeVar

from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.spec import MAX_SLOTS
from antiphon.vocabulary.tasks import Mode

WeightsT = TypeVar("WeightsT")


class StatelessSession(Generic[WeightsT]):
    """A slot over weights that all slots share: any number may be opened, and a reset has nothing to undo."""

    capacity = MAX_SLOTS

    def __init__(self, weights: WeightsT, mode: Mode) -> None:
        self.mode = mode
        self._weights: WeightsT | None = weights

    def clone(self) -> Self:
        """Open another slot over the same weights."""
        return type(self)(self._open, self.mode)

    def reset(self) -> None:
        """Nothing outlives a request."""

    def close(self) -> None:
        """Let go of the weights."""
        self._weights = None

    @property
    def _open(self) -> WeightsT:
        if self._weights is None:
            raise InvariantError("the session is closed")
        return self._weights
