"""`GET /v1/audio/voices`: what may be asked for as a voice. It waits for no model."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import Voices
from antiphon.http.document import NOT_FOUND, answered
from antiphon.http.routing import get
from antiphon.http.schemas import in_query
from antiphon.http.streaming import json_answer
from antiphon.service.voices import Voice, VoiceService

_QUERY = {"parameters": [in_query("model", "whose voices; without it all that there are", {"type": "string"})]}
_ANSWER = answered(Voices, errors=(NOT_FOUND,)) | _QUERY


def add_voice_routes(router: APIRouter, service: VoiceService) -> None:
    """The route that lists voices."""

    @get(router, "/v1/audio/voices", _ANSWER)
    async def voices(request: Request) -> Response:
        """The voices of a model, its presets and the voice library among them; without one, those of all that speak."""
        model_id = request.query_params.get("model")
        if not model_id:
            return json_answer({"voices": [{**_json(it), "models": list(it.models)} for it in service.all()]})
        listed = [_json(it) for it in service.of_model(model_id)]
        return json_answer({"model": model_id, "default_preset": service.default_preset(model_id), "voices": listed})


def _json(voice: Voice) -> dict[str, object]:
    """A voice as Open WebUI and others read it: they show `name` and send `id`."""
    return {"id": voice.name, "name": voice.name, "kind": voice.kind}
