"""Mixed load on a server that will be stopped: clients that never rest, and what became of each of their calls.

It asserts nothing. A call ends whole, refused (503 shutting_down) or closed; whatever else happens is told in words.
"""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import httpx

from conformance_client import HANG_GUARD_S
from conformance_server import LOAD, TASK_BATCH, TASK_RUN, TASK_STREAM, UNLOAD, Model

WHOLE, REFUSED, CLOSED = "whole", "refused", "closed"

CLIENTS = 6


@dataclass(frozen=True, slots=True)
class Order:
    """One call that can be made: `texts` are those of its requests, none for a manager."""

    path: str
    body: Mapping[str, object]
    texts: tuple[str, ...]
    is_whole: Callable[[httpx.Response], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call and its end."""

    order: Order
    end: str


class Traffic:
    """Requests, streams and batches on `warm`, cold loads of `cold`, and managers of both, which queue with them."""

    def __init__(self, url: str, warm: Model, cold: Model, seed: int) -> None:
        self._url = url
        self._orders = [_inferences(warm.id, f"client {number}", seed) for number in range(CLIENTS)]
        self._orders += [_reconfigurations(warm), _cold_loads(cold.id)]
        self._told = threading.Condition()
        self.outcomes: list[Outcome] = []

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Keep calling until each client meets the end of the server, which the block must bring about."""
        with ThreadPoolExecutor(len(self._orders)) as threads:
            running = [threads.submit(self._call, orders, number) for number, orders in enumerate(self._orders)]
            yield
            for client in running:
                client.result(2 * HANG_GUARD_S)

    def wait_for(self, ended: int) -> None:
        """Block until so many calls have ended."""
        with self._told:
            self._told.wait_for(lambda: len(self.outcomes) >= ended, HANG_GUARD_S)

    def _call(self, orders: Iterator[Order], number: int) -> None:
        """One client: it keeps its connection or, every other client, opens one for each call."""
        fields = {"connection": "close"} if number % 2 else {}
        with httpx.Client(base_url=self._url, timeout=HANG_GUARD_S, headers=fields) as client:
            for order in orders:
                end = _end_of(client, order)
                with self._told:
                    self.outcomes.append(Outcome(order, end))
                    self._told.notify_all()
                if end != WHOLE:
                    return


def _end_of(client: httpx.Client, order: Order) -> str:
    try:
        answer = client.post(order.path, json=order.body)
    except httpx.TimeoutException:
        return "no answer"
    except httpx.TransportError:
        return CLOSED
    if answer.status_code == 200 and order.is_whole(answer):
        return WHOLE
    if answer.status_code == 503 and answer.json()["error"]["code"] == "shutting_down":
        return REFUSED
    return f"{answer.status_code} {answer.text[:300]}"


def _inferences(model_id: str, name: str, seed: int) -> Iterator[Order]:
    chance = random.Random(f"{seed} {name}")
    for turn in count():
        yield chance.choice([_run, _stream, _batch])(model_id, f"{name} turn {turn}")


def _reconfigurations(model: Model) -> Iterator[Order]:
    body = {"id": model.id, "family": "controlled", "path": str(model.checkpoint.path), "task": "tts", "slots": 2}
    for turn in count():
        changed = {**body, "mode": ("offline", "streaming")[turn % 2]}
        yield Order(LOAD, changed, (), lambda answer: answer.json()["loaded"] is True)


def _cold_loads(model_id: str) -> Iterator[Order]:
    for turn in count():
        yield Order(UNLOAD, {"id": model_id}, (), lambda answer: answer.json()["loaded"] is False)
        yield _run(model_id, f"cold turn {turn}")


def _run(model_id: str, text: str) -> Order:
    body = {"model": model_id, "request": {"text": text}}
    return Order(TASK_RUN, body, (text,), lambda answer: answer.json()["text"].endswith(f"|{text}"))


def _stream(model_id: str, text: str) -> Order:
    def is_whole(answer: httpx.Response) -> bool:
        *events, done = _events_of(answer)
        return done is None and events[-1]["result"]["text"].endswith(f"|{text}")

    return Order(TASK_STREAM, {"model": model_id, "request": {"text": text}}, (text,), is_whole)


def _batch(model_id: str, text: str) -> Order:
    texts = (f"{text} first", f"{text} second")

    def is_whole(answer: httpx.Response) -> bool:
        *results, last, done = _events_of(answer)
        told = [it["result"]["text"].rpartition("|")[2] for it in results]
        return done is None and last["type"] == "task.batch.done" and tuple(told) == texts

    return Order(TASK_BATCH, {"model": model_id, "requests": [{"text": it} for it in texts]}, texts, is_whole)


def _events_of(answer: httpx.Response) -> list[dict[str, dict[str, str]] | None]:
    """The data of an answer's events; `[DONE]` is None."""
    data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    return [None if it == "[DONE]" else json.loads(it) for it in data]
