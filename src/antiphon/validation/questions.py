"""A question: one input asked in one way, and the digest of its answer. It sends nothing.

What is compared is the answer's body, byte for byte, without its top-level `timing`: that tells of the server.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice

from antiphon.validation.client import Answer
from antiphon.vocabulary.tasks import OptionValue

_DATA = "data: "
_END = "[DONE]"


class Way(StrEnum):
    """The ways to ask, each with its route `/v1/tasks/...`."""

    RUN = "run"
    STREAM = "stream"
    BATCH = "batch"

    @property
    def path(self) -> str:
        """The route."""
        return f"/v1/tasks/{self.value}"


@dataclass(frozen=True, slots=True)
class Input:
    """One request for a model, under a name; `fields` are those of `request` in `/v1/tasks/run`."""

    name: str
    fields: Mapping[str, OptionValue]

    def sha256(self) -> str:
        """The digest of the fields, recordings included."""
        return hashlib.sha256(json.dumps(self.fields, sort_keys=True).encode()).hexdigest()

    def size_bytes(self) -> int:
        """How much there is to speak or to hear, for comparing inputs of one task."""
        return len(json.dumps(self.fields))


@dataclass(frozen=True, slots=True)
class Question:
    """Inputs asked in one way; a batch has several, the others one."""

    way: Way
    inputs: tuple[Input, ...]

    @property
    def name(self) -> str:
        """What evidence calls it."""
        return f"{self.way.value}/{'+'.join(it.name for it in self.inputs)}"

    def body(self, model_id: str) -> dict[str, object]:
        """The request's body."""
        asked = [dict(it.fields) for it in self.inputs]
        return {"model": model_id, **({"requests": asked} if self.way is Way.BATCH else {"request": asked[0]})}

    def size_bytes(self) -> int:
        """How much there is to do, for comparing questions of one way."""
        return sum(it.size_bytes() for it in self.inputs)


_THINNED: Mapping[Way, int] = {Way.RUN: 1, Way.STREAM: 2, Way.BATCH: 4}
"""One input of so many is asked in a way that is not the model's first. A batch is two inputs, and costs as much."""


def questions_of(inputs: Sequence[Input], ways: Sequence[Way]) -> list[Question]:
    """Every input in the first of the ways, and some of them in each other; a batch is an input and the one after it.

    They come in the order of the inputs, so that a few that are dealt in turn mix the ways, too.
    """
    asked = []
    for place, it in enumerate(inputs):
        for way in ways:
            if way is ways[0] or place % _THINNED[way] == 1 % _THINNED[way]:
                following = inputs[(place + 1) % len(inputs)]
                asked.append(Question(way, (it, following) if way is Way.BATCH else (it,)))
    return asked


class Deck:
    """Deals the questions out in turn, without an end; every second hand is reversed."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._questions = questions
        self._cards = cycle(questions)
        self._dealt = 0

    def hand(self, size: int) -> list[Question]:
        """The next `size` questions."""
        cards = list(islice(self._cards, size))
        self._dealt += 1
        return cards if self._dealt % 2 else cards[::-1]

    def longest(self) -> Question:
        """The question with the most to do."""
        return max(self._questions, key=Question.size_bytes)


def digest_of(way: Way, answer: Answer) -> tuple[str | None, str | None]:
    """The SHA-256 of an answer without its timing, or else why it is none: one of the two is None."""
    if answer.status != 200:
        return None, f"HTTP {answer.status}: {_shown(answer.body)}"
    digest = hashlib.sha256()
    try:
        if way is Way.RUN:
            digest.update(_untimed(answer.body.decode()))
            return digest.hexdigest(), None
        events = list(_events(answer.body.decode()))
        for event in events:
            digest.update((event.encode() if event == _END else _untimed(event)) + b"\n")
    except ValueError as error:
        return None, f"the answer cannot be read: {error}"
    if not events or events[-1] != _END:
        return None, f"the answer breaks off: {_shown(answer.body[-300:])}"
    return digest.hexdigest(), None


def _events(body: str) -> Iterator[str]:
    return (line.removeprefix(_DATA) for line in body.splitlines() if line.startswith(_DATA))


def _untimed(text: str) -> bytes:
    """A JSON object without `timing`, its keys in the order in which they came."""
    told = json.loads(text)
    if not isinstance(told, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 (what was sent is wrong, no argument)
    told.pop("timing", None)
    return json.dumps(told).encode()


def _shown(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace")
