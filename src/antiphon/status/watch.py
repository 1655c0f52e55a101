"""A server looked at again and again: it may go and come back meanwhile. Where that is shown is not known here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from antiphon.status.errors import NoServer
from antiphon.status.source import Answers


class Source(Protocol):
    """What can be asked for a status."""

    def ask(self) -> Answers:
        """Raises NoServer where nobody answers."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found; with `lost`, why nobody answered, `answers` are the last ones that there were."""

    answers: Answers | None
    lost: str | None = None


def looks(source: Source, pause: Callable[[], None]) -> Iterator[Look]:
    """Look, pause, and look again, without end. What is no lost connection is raised: it would not mend itself."""
    answers: Answers | None = None
    while True:
        try:
            answers = source.ask()
            yield Look(answers)
        except NoServer as error:
            yield Look(answers, error.message)
        pause()
