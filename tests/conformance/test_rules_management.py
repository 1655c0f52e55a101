"""The cells `rule.*` about who may manage, and about models that nobody registered."""

from conformance_evidence import error_of, steps
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, LOAD, TASK_BATCH, TASK_RUN, TASK_STREAM, UNLOAD, UNLOAD_ALL, answer_of
from conformance_standing import seen, standing

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


@cell("rule.unknown_target")
def test_rule_unknown_target(server):
    model = server.new_model()
    request = {"text": "nobody"}
    calls = [
        ("GET", "/v1/models/unknown", None),
        ("GET", "/v1/audio/voices?model=unknown", None),
        ("POST", UNLOAD, {"id": "unknown"}),
        ("POST", UNLOAD, {"id": "unknown", "dry_run": True}),
        ("POST", TASK_RUN, {"model": "unknown", "request": request}),
        ("POST", TASK_STREAM, {"model": "unknown", "request": request}),
        ("POST", TASK_BATCH, {"model": "unknown", "requests": [request]}),
        ("POST", "/v1/audio/speech", {"model": "unknown", "input": "nobody"}),
    ]
    for method, path, body in calls:
        answer = server.client.call(method, path, json=body)
        assert (answer.status_code, error_of(answer)["type"]) == (404, "not_found_error"), (method, path)

    told = server.bulk_unload("unknown", model, "another", "unknown").ok()
    assert told == {"unloaded": [model.id], "not_found": ["unknown", "another"]}
    assert seen(model) == standing("unloaded", slots=server.slots)
