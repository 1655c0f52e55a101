"""The cells `rule.*` about who may manage, and about models that nobody registered."""

import httpx
import numpy as np
import pytest
from websockets.exceptions import InvalidStatus

from audio_assets import wav_bytes
from conformance_evidence import error_of, steps
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, LOAD, TASK_BATCH, TASK_RUN, TASK_STREAM, UNLOAD, UNLOAD_ALL, answer_of
from conformance_standing import seen, seen_together, standing
from websocket_clients import connect

MODELS_ROOT, PACKAGES = "/v1/ui/models_root", "/v1/ui/packages"
MANAGEMENT = {
    ("POST", LOAD),
    ("POST", UNLOAD),
    ("POST", BULK_UNLOAD),
    ("POST", UNLOAD_ALL),
    ("GET", "/v1/ui/models/{model_id}"),
    ("GET", MODELS_ROOT),
    ("POST", MODELS_ROOT),
    ("GET", PACKAGES),
    ("GET", f"{PACKAGES}/{{package_id}}/status"),
    ("POST", f"{PACKAGES}/install"),
    ("POST", f"{PACKAGES}/stop"),
    ("POST", f"{PACKAGES}/remove"),
}


OTHER = {
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/health/ready"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model_id}"),
    ("GET", "/v1/status"),
    ("GET", "/v1/events"),
    ("GET", "/v1/audio/models"),
    ("GET", "/v1/audio/voices"),
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/audio/transcriptions/live"),
    ("POST", "/v1/audio/transcriptions/details"),
    ("POST", "/v1/audio/translations"),
    ("POST", "/v1/audio/alignments"),
    ("POST", "/v1/batches/transcriptions"),
    ("POST", TASK_RUN),
    ("POST", TASK_STREAM),
    ("POST", TASK_BATCH),
}


@cell("rule.management_forbidden")
def test_rule_management_forbidden(fresh_server):
    server = fresh_server("no_management", models={"m": {}})
    model = server.configured_model("m")
    assert answer_of(model.infer("first")).session == "s1"
    before = seen(model)
    bodies = ({"id": "m"}, {"id": "unknown"}, {"model_ids": ["m"]}, {"id": "m", "dry_run": True}, {})
    for method, path in sorted(MANAGEMENT):
        for body in bodies:
            answer = server.client.call(method, path, json=body)
            assert (answer.status_code, error_of(answer)["type"]) == (403, "permission_error"), (method, path, body)
        unread = server.client.call(method, path, content=b"{", headers={"content-type": "text/plain"})
        assert unread.status_code == 403  # decided before the body is looked at

    assert seen(model) == before
    assert answer_of(model.infer("second")).session == "s1"
    assert steps(model.checkpoint, "load", "destroy") == ["load"]


@cell("rule.management_forbidden")
def test_rule_management_forbidden_knows_every_route(server):
    paths = server.client.call("GET", "/openapi.json").json()["paths"]

    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert routes - OTHER == MANAGEMENT  # a route that is added belongs to one or the other


WAV = wav_bytes(np.zeros(1600, np.float32))
TRANSCRIPTIONS = "/v1/audio/transcriptions"
FORM = {"files": {"file": ("a.wav", WAV)}}


def refused_unknown(answer):
    """Check that an answer says that there is no such model, and nothing else."""
    error = error_of(answer)
    said = error.pop("message")
    assert (answer.status_code, error["type"], error["code"]) == (404, "not_found_error", "model_not_found")
    assert said.startswith("there is no model 'unknown'")
    return error["param"]


TARGETED = [
    ("GET", "/v1/models/unknown", "model", {}),
    ("GET", "/v1/ui/models/unknown", "id", {}),
    ("GET", "/v1/audio/voices?model=unknown", "model", {}),
    ("POST", LOAD, "id", {"json": {"id": "unknown"}}),
    ("POST", LOAD, "id", {"json": {"id": "unknown", "dry_run": True}}),
    ("POST", LOAD, "id", {"json": {"id": "unknown", "strategy": "side_by_side"}}),
    ("POST", f"{LOAD}?busy_timeout_ms=5", "id", {"json": {"id": "unknown"}}),
    ("POST", UNLOAD, "id", {"json": {"id": "unknown"}}),
    ("POST", UNLOAD, "id", {"json": {"id": "unknown", "dry_run": True}}),
    ("POST", TASK_RUN, "model", {"json": {"model": "unknown", "request": {"text": "nobody"}}}),
    ("POST", TASK_STREAM, "model", {"json": {"model": "unknown", "request": {"text": "nobody"}}}),
    ("POST", TASK_BATCH, "model", {"json": {"model": "unknown", "requests": [{"text": "nobody"}]}}),
    ("POST", "/v1/audio/speech", "model", {"json": {"model": "unknown", "input": "nobody"}}),
    (
        "POST",
        "/v1/audio/speech",
        "model",
        {"json": {"model": "unknown", "input": "nobody", "stream_format": "sse"}},
    ),
    ("POST", TRANSCRIPTIONS, "model", {"data": {"model": "unknown"}, **FORM}),
    ("POST", TRANSCRIPTIONS, "model", {"data": {"model": "unknown", "stream": "true"}, **FORM}),
    ("POST", "/v1/audio/transcriptions/details", "model", {"data": {"model": "unknown"}, **FORM}),
    ("POST", "/v1/audio/translations", "model", {"data": {"model": "unknown"}, **FORM}),
    ("POST", "/v1/audio/alignments", "model", {"data": {"model": "unknown", "text": "nobody"}, **FORM}),
    ("POST", "/v1/batches/transcriptions", "model", {"data": {"model": "unknown"}, **FORM}),
    ("POST", "/v1/audio/transcriptions/live?model=unknown", "model", {"content": bytes(320)}),
]
"""Every call that targets one model: its method, path, the parameter at fault, and what is sent."""


@cell("rule.unknown_target")
@pytest.mark.parametrize(
    ("method", "path", "param", "content"),
    TARGETED,
    ids=[f"{method} {path}" for method, path, *_ in TARGETED],
)
def test_rule_unknown_target(server, method, path, param, content):
    known = server.new_model()
    before, all_before = seen(known), server.status()["models"]

    assert refused_unknown(server.client.call(method, path, **content)) == param

    assert [it["id"] for it in server.status()["models"]] == [it["id"] for it in all_before]  # none was registered
    assert seen(known) == before


@cell("rule.unknown_target")
@pytest.mark.parametrize("path", ["/v1/audio/transcriptions/live?model=unknown", "/v1/realtime?model=unknown"])
def test_rule_unknown_target_of_a_websocket(server, path):
    with pytest.raises(InvalidStatus) as refused:
        connect(server.process.url.replace("http", "ws") + path)

    answer = refused.value.response
    assert refused_unknown(httpx.Response(answer.status_code, content=bytes(answer.body))) == "model"


@cell("rule.unknown_target")
def test_rule_unknown_target_beside_a_known_one(server):
    model = server.new_model(task="asr")
    form = {"model": model.id, "response_format": "diarized_json", "diarization_model": "unknown"}

    assert refused_unknown(server.client.call("POST", TRANSCRIPTIONS, data=form, **FORM)) == "diarization_model"

    assert model.runs() == []  # refused before the first of the two was asked


@cell("rule.unknown_target")
def test_rule_unknown_target_knows_every_route(server):
    """A route that may answer 404 takes the id of a model, or of a package; each of the former is tried above."""
    tried = {(method, path.partition("?")[0].replace("/unknown", "/{model_id}")) for method, path, *_ in TARGETED}
    paths = server.client.call("GET", "/openapi.json").json()["paths"]

    routes = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method, it in methods.items()
        if "404" in it["responses"]
    }
    assert {it for it in routes if not it[1].startswith(PACKAGES)} == tried


@cell("rule.unknown_target")
def test_rule_unknown_target_among_known_ones(server):
    """A bulk unload names each unknown id once, in order, and unloads each known one once, loaded or not."""
    model, cold = server.new_model(), server.new_model(loaded=False)
    assert steps(model.checkpoint, "closed") == []

    told = server.bulk_unload("unknown", model, "another", "unknown", cold, model).ok()

    assert told == {"unloaded": [model.id, cold.id], "not_found": ["unknown", "another"]}
    unloaded = standing("unloaded", slots=server.slots)
    assert seen_together(server, model, cold) == [unloaded, unloaded]
    assert steps(model.checkpoint, "closed") == ["closed"]
    assert server.bulk_unload("unknown").ok() == {"unloaded": [], "not_found": ["unknown"]}
    dry = server.client.call("POST", BULK_UNLOAD, json={"model_ids": ["unknown", model.id], "dry_run": True}).json()
    assert (dry["unloaded"], dry["not_found"]) == ([model.id], ["unknown"])
