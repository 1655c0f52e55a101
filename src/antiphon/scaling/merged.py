"""What is asked of the server and answered from what every replica answers: health, models, status, packages, numbers.

Where a query names a replica (`?replica=NAME`), that one's own answer is given instead, by `forwarding`.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.envelope import error_body, error_response
from antiphon.http.streaming import json_answer
from antiphon.observability.labelled import labelled
from antiphon.scaling.changes import verdict
from antiphon.scaling.fleet import Fleet
from antiphon.scaling.upstream import Answered, Upstream
from antiphon.vocabulary.errors import InvalidRequest, ServerBusy, Starting

Json: TypeAlias = dict[str, object]
Item = TypeVar("Item")

_SUMMED = ("slots", "active_slots", "queued_requests", "max_parallel_slots")
_STANDING = ("state", "installed", "phase", "progress", "error")
"""What may differ between replicas of a package that both know."""


class Merged:
    """Asks all replicas and answers once."""

    def __init__(self, fleet: Fleet, upstream: Upstream) -> None:
        self._fleet = fleet
        self._upstream = upstream

    async def health(self, request: Request) -> Response:
        """Whether any replica answers, so that requests are served."""
        answers = await self._all(request)
        models = max((int(str(_whole(it)["models"])) for it in answers if it.status == 200), default=None)
        if models is None:
            return error_response(ServerBusy("no replica answers"))
        return json_answer({"status": "ok", "models": models, "replicas": self._count(answers)})

    async def ready(self, request: Request) -> Response:
        """Whether every replica is there and ready."""
        answers = await self._all(request)
        count = self._count(answers)
        if count["ready"] == count["wanted"]:
            return json_answer({"status": "ready", "replicas": count})
        missing = [_whole(it).get("missing") for it in answers if it.status != 200 and it.body]
        starting = Starting(f"{count['ready']} of {count['wanted']} replicas are ready")
        named = sorted({name for names in missing if isinstance(names, list) for name in names})
        body = {**error_body(starting), "missing": named if None not in missing else None, "replicas": count}
        return json_answer(body, {"retry-after": "1"}, status=503)

    async def status(self, request: Request) -> Response:
        """Every model of every replica: one moment at each, and none of all."""
        answers = await self._all(request)
        models, not_served = (
            [
                {**member, "replica": it.replica.name}
                for it in answers
                if it.status == 200
                for member in _members(it, name)
            ]
            for name in ("models", "not_served")
        )
        replicas = [
            {"name": it.replica.name, "node": it.replica.node, "answers": it.status == 200}
            | ({"last_event_id": _whole(it)["last_event_id"]} if it.status == 200 else {})
            for it in answers
        ]
        return json_answer({"models": models, "not_served": not_served, "replicas": replicas})

    async def models(self, request: Request) -> Response:
        """The models of all replicas: loaded where any has one in memory, with the slots of all."""
        return await self._listed(request, "data")

    async def speaking_models(self, request: Request) -> Response:
        """Those that speak."""
        return await self._listed(request, "models")

    async def model(self, request: Request) -> Response:
        """One model, likewise; what the replicas answer where none knows it."""
        answers = await self._all(request)
        known = [_whole(it) for it in answers if it.status == 200]
        return json_answer(_one_model(known)) if known else verdict(answers)

    async def packages(self, request: Request) -> Response:
        """The packages, each with how it stands at every replica."""
        answers = await self._all(request)
        if any(it.status != 200 for it in answers):
            return verdict(answers)
        named = [(it.replica.name, package) for it in answers for package in json.loads(it.body)]
        merged = [
            {**of_one[0][1], "replicas": {name: {key: it[key] for key in _STANDING} for name, it in of_one}}
            for of_one in _by_id(named, lambda pair: str(pair[1]["id"]))
        ]
        return json_answer(merged)

    async def agreed(self, request: Request) -> Response:
        """What all say, with each one's own words."""
        return verdict(await self._all(request))

    async def metrics(self, request: Request) -> Response:
        """The numbers of all replicas, each with the label `replica`."""
        answers = [it for it in await self._all(request) if it.status == 200]
        content, content_type = labelled({it.replica.name: it.body.decode() for it in answers})
        return Response(content, headers={"content-type": content_type})

    async def events(self, request: Request) -> Response:
        """Each replica has a journal of its own."""
        del request
        names = ", ".join(it.name for it in await self._fleet.present())
        raise InvalidRequest(f"each replica has events of its own: name one of {names}", param="replica")

    async def _listed(self, request: Request, member: str) -> Response:
        answers = [it for it in await self._all(request) if it.status == 200]
        models = [model for it in answers for model in _members(it, member)]
        merged = [_one_model(of_one) for of_one in _by_id(models, lambda it: str(it["id"]))]
        return json_answer({"object": "list", member: merged})

    async def _all(self, request: Request) -> Sequence[Answered]:
        """What each answers; raises ServerBusy where there is none."""
        replicas = await self._fleet.present()
        if not replicas:
            raise ServerBusy("there is no replica now")
        return await self._upstream.ask_all(replicas, request)

    def _count(self, answers: Sequence[Answered]) -> dict[str, int]:
        return {"ready": sum(it.status == 200 for it in answers), "wanted": self._fleet.size}


def _one_model(found: Sequence[Json]) -> Json:
    merged = {**found[0], "loaded": any(it["loaded"] for it in found)}
    for name in _SUMMED:
        told = [value for it in found if isinstance(value := it.get(name), int)]
        if name in found[0]:
            merged[name] = sum(told) if told else None
    return merged


def _by_id(items: Iterable[Item], id_of: Callable[[Item], str]) -> Iterable[Sequence[Item]]:
    """Those of one id together, in the order in which the ids come first."""
    grouped: dict[str, list[Item]] = {}
    for item in items:
        grouped.setdefault(id_of(item), []).append(item)
    return grouped.values()


def _whole(answer: Answered) -> Json:
    said: Json = json.loads(answer.body)
    return said


def _members(answer: Answered, name: str) -> Sequence[Json]:
    members: Sequence[Json] = json.loads(answer.body)[name]
    return members
