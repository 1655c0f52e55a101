"""A wave: requests that are all out before any is answered, and how the server stood while they were answered.

The proof is the client's: the last byte of every request is held back, all are let go of in a row, and only if no
connection can be read after the last one was it a wave. The server's own status shows what they led to.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

from antiphon.validation.client import Answer, HeldRequest, any_answered
from antiphon.validation.errors import NoAnswer
from antiphon.validation.questions import Question, digest_of
from antiphon.validation.site import Entry, Site, Standing
from antiphon.validation.verdicts import Seen

_LOOK_EVERY_S = 0.02
_SELDOM_S = 0.2
_FIRST_LOOKS = 25
"""A wave shows what it shows at its beginning: later looks at a loaded model would only take time from it."""


@dataclass(frozen=True, slots=True)
class Wave:
    """What came of it. `together`: all were out before any was answered."""

    answers: tuple[Answer | NoAnswer, ...]
    together: bool
    standings: tuple[Standing, ...]

    @property
    def most_active_slots(self) -> int:
        """The most slots of a loaded model that the status showed at work."""
        return max((it.active_slots for it in self.standings if it.loaded), default=0)


def send_wave(
    site: Site,
    entry: Entry,
    requests: Sequence[tuple[str, bytes]],
    on_standing: Callable[[Standing], None] | None = None,
) -> Wave:
    """Send requests (path, body) as one wave; `on_standing` hears how the entry stands, again and again, meanwhile."""
    with ThreadPoolExecutor(len(requests)) as readers, ExitStack() as opened:  # one that is left waits for no answer
        held = [opened.enter_context(HeldRequest(site.url, path, body)) for path, body in requests]
        for request in held:
            request.let_go()
        together = not any_answered(held)
        answers = [readers.submit(_answer, request) for request in held]
        standings = _watched(site, entry, answers, on_standing)
        return Wave(tuple(it.result() for it in answers), together, tuple(standings))


def ask_together(
    site: Site, entry: Entry, questions: Sequence[Question], on_standing: Callable[[Standing], None] | None = None
) -> tuple[Wave, tuple[Seen, ...]]:
    """Send questions as one wave; returns it with the digest of each answer."""
    requests = [(question.way.path, json.dumps(question.body(entry)).encode()) for question in questions]
    wave = send_wave(site, entry, requests, on_standing)
    return wave, tuple(seen(question, answer) for question, answer in zip(questions, wave.answers, strict=True))


def seen(question: Question, answer: Answer | NoAnswer) -> Seen:
    """An answer as evidence has it."""
    if isinstance(answer, NoAnswer):
        return Seen(question.name, None, answer.message)
    digest, fault = digest_of(question.way, answer)
    return Seen(question.name, digest, fault)


def _answer(request: HeldRequest) -> Answer | NoAnswer:
    try:
        return request.answer()
    except NoAnswer as fault:
        return fault


def _watched(
    site: Site,
    entry: Entry,
    answers: Sequence[Future[Answer | NoAnswer]],
    on_standing: Callable[[Standing], None] | None,
) -> list[Standing]:
    standings: list[Standing] = []
    left = set(answers)
    looks_since_load = 0
    while left:
        try:
            standings.append(site.standing(entry))
            looks_since_load += standings[-1].loaded
            if on_standing is not None:
                on_standing(standings[-1])
        except NoAnswer:  # the answers tell of a server that is gone
            wait(left)
        _, left = wait(left, timeout=_LOOK_EVERY_S if looks_since_load < _FIRST_LOOKS else _SELDOM_S)
    return standings
