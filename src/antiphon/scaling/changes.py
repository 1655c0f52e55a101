"""Management, at every replica: one call becomes one for each, and one answer says what all of them did.

A change is a transaction at each replica and none across them. Whether all did the same is told, and who did not.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from antiphon.http.bodies import read_bytes
from antiphon.http.envelope import error_body
from antiphon.http.presence import while_connected
from antiphon.http.streaming import json_answer
from antiphon.scaling.fleet import Fleet
from antiphon.scaling.spooled import model_id_in
from antiphon.scaling.upstream import Answered, Upstream, died
from antiphon.vocabulary.errors import PartialChange, ServerBusy

_BODY_BYTES = 1024 * 1024
"""As large as the largest body of a management route."""


class Changes:
    """Makes changes at all replicas. Those of one model are made one after another, in the same order everywhere.

    Whom `admits` does not let manage a replica refuses, before a body is read.
    """

    def __init__(self, fleet: Fleet, upstream: Upstream, admits: Callable[[Scope], bool]) -> None:
        self._fleet = fleet
        self._upstream = upstream
        self._admits = admits
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()

    async def change(self, request: Request) -> Response:
        """Have every replica do it.

        Raises ServerBusy, before anything is changed, where a replica is missing: it would come back without that.
        """
        if not self._admits(request.scope):
            return await self._refused(request)
        body = await read_bytes(request, _BODY_BYTES)
        return await while_connected(request, self._change(request, body))

    async def _change(self, request: Request, body: bytes) -> Response:
        async with self._turn(model_id_in(body)):
            replicas = await self._fleet.present()
            if len(replicas) < self._fleet.size:
                found = f"{len(replicas)} of {self._fleet.size} replicas are there"
                raise ServerBusy(f"{found}; nothing is changed before all are")
            return verdict(await self._upstream.ask_all(replicas, request, body))

    async def _refused(self, request: Request) -> Response:
        present = await self._fleet.present()
        if not present:
            raise ServerBusy("there is no replica now")
        return repeated(await self._upstream.ask(present[0], request, None))

    @asynccontextmanager
    async def _turn(self, model_id: str) -> AsyncIterator[None]:
        """This call's turn at the model that it names; those that name none wait for nobody."""
        if not model_id:
            yield
            return
        self._waiting[model_id] += 1
        try:
            async with self._turns.setdefault(model_id, asyncio.Lock()):
                yield
        finally:
            self._waiting[model_id] -= 1
            if not self._waiting[model_id]:
                del self._waiting[model_id], self._turns[model_id]


def verdict(answers: Sequence[Answered]) -> Response:
    """One answer for all: that of the first where they agree, with everybody's own in `replicas`.

    They agree where all did it, or all refused it with the same status and code.
    """
    if len({_outcome(it) for it in answers}) == 1:
        first = answers[0]
        said = _json(first)
        if isinstance(said, dict) and first.status < 400:
            return json_answer(
                {**said, "replicas": {it.replica.name: _json(it) for it in answers}}, status=first.status
            )
        return repeated(first)
    told = {it.replica.name: {"status": it.status, "answer": _json(it)} for it in answers}
    did = sum(it.status < 400 for it in answers)
    refused = ", ".join(f"{it.replica.name}: {_reason(it)}" for it in answers if it.status >= 400)
    error = PartialChange(f"{did} of {len(answers)} replicas did it, and the others did not: {refused}")
    return json_answer({**error_body(error), "replicas": told}, status=500)


def repeated(answer: Answered) -> Response:
    """The answer of one replica, as it is; raises WorkerDied for that of one that has died."""
    if not answer.headers:
        raise died(answer.replica)
    return Response(answer.body, answer.status, answer.headers)


def _outcome(answer: Answered) -> tuple[int, str]:
    return (200, "") if answer.status < 400 else (answer.status, _code(answer))


def _json(answer: Answered) -> object:
    try:
        said: object = json.loads(answer.body)
    except ValueError:
        return None
    return said


def _error(answer: Answered) -> Mapping[str, object]:
    said = _json(answer)
    error = said.get("error") if isinstance(said, dict) else None
    return error if isinstance(error, dict) else {}


def _code(answer: Answered) -> str:
    return str(_error(answer).get("code"))


def _reason(answer: Answered) -> str:
    return str(_error(answer).get("message") or "it has ended before its answer had")
