"""`/health`, `/v1/models`, loading and unloading, and the OpenAPI document, over real sockets."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from antiphon.ports.codec import AudioFormat
from controlled_server import SLASHED
from refusals import assert_refused
from server_process import HANG_GUARD_S

LOAD, UNLOAD = "/v1/models/load", "/v1/models/unload"
SLOT_FIELDS = {"slots", "active_slots", "queued_requests", "max_parallel_slots"}


def registration(server, **fields):
    """The registration of the model `tts`, with these fields changed."""
    path = str(server.checkpoints["tts"].path)
    return {"id": "tts", "family": "controlled", "task": "tts", "path": path, **fields}


@pytest.fixture
def unloaded(parallel_server):
    """The model `tts`, not in memory."""
    assert parallel_server.client.post(UNLOAD, json={"id": "tts"}).json()["loaded"] is False
    return parallel_server


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (LOAD, b'{"id": "tts", "id": "asr"}', "id"),
        (LOAD, b'{"id": "tts", "slots": 1, "slots": 2}', "slots"),
        (LOAD, b'{"id": "tts", "options": {"a": 1, "a": 2}}', "options.a"),
        (UNLOAD, b'{"id": "tts", "id": "asr"}', "id"),
        ("/v1/tasks/unload_models", b'{"model_ids": ["tts"], "model_ids": []}', "model_ids"),
    ],
)
def test_a_key_that_appears_twice_changes_nothing(parallel_server, path, body, param):
    before = parallel_server.client.get("/v1/models").json()
    answer = parallel_server.client.post(path, content=body, headers={"content-type": "application/json"})
    assert "appears more than once" in assert_refused(answer, 400, param).message
    assert parallel_server.client.get("/v1/models").json() == before


def test_health_counts_the_models(server):
    assert server.client.get("/health").json() == {"status": "ok", "models": 3}


@pytest.mark.parametrize(
    "path",
    [
        "/health",
        "/metrics",
        "/health/ready",
        "/v1/models",
        "/v1/models/tts",
        "/v1/status",
        "/v1/audio/models",
        "/v1/audio/voices?model=tts",
    ],
)
def test_head_is_get_without_the_body(server, path):
    got, headed = server.client.get(path), server.client.head(path)
    assert headed.status_code == got.status_code == 200
    assert headed.content == b""
    assert headed.headers["content-type"] == got.headers["content-type"]
    assert "content-length" in headed.headers


def test_the_list_has_every_model_in_openais_shape(server):
    listed = server.client.get("/v1/models").json()

    assert listed["object"] == "list"
    assert [(it["id"], it["object"], it["task"]) for it in listed["data"]] == [
        ("tts", "model", "tts"),
        ("asr", "model", "asr"),
        (SLASHED, "model", "tts"),
    ]


def test_only_the_parallel_runtime_reports_slots(parallel_server, serial_server):
    assert set(parallel_server.model()) >= SLOT_FIELDS
    assert not SLOT_FIELDS & set(serial_server.model())


def test_the_true_parallelism_is_known_once_the_model_is_loaded(unloaded):
    assert (unloaded.model()["slots"], unloaded.model()["max_parallel_slots"]) == (2, None)

    unloaded.speak("load it")

    assert (unloaded.model()["loaded"], unloaded.model()["max_parallel_slots"]) == (True, 4)


@pytest.mark.parametrize("address", ["org/tts%20one", "org%2Ftts%20one"])
def test_an_id_with_a_slash_and_a_space_is_reachable(server, address):
    assert server.client.get(f"/v1/models/{address}").json()["id"] == SLASHED
    assert server.speak("it speaks", model=SLASHED).status_code == 200


def test_load_brings_a_model_into_memory(unloaded):
    answer = unloaded.client.post(LOAD, json={"id": "tts"})

    assert (answer.status_code, answer.json()) == (200, {"id": "tts", "loaded": True})
    assert unloaded.model()["loaded"] is True


def test_load_takes_a_whole_registration(unloaded):
    fields = registration(unloaded, mode="offline", slots=2)

    assert unloaded.client.post(LOAD, json=fields).json() == {"id": "tts", "loaded": True}


REGISTERED = "/v1/ui/models"


def test_a_registration_is_told_as_a_body_that_changes_nothing(parallel_server):
    fields = registration(parallel_server, slots=2, threads=3, voice_presets={"calm": {"seed": 7}}, aliases=["tts-9"])
    assert parallel_server.client.post(LOAD, json=fields).status_code == 200

    told = parallel_server.client.get(f"{REGISTERED}/tts").json()

    assert fields.items() <= told.items()
    assert parallel_server.client.get(f"{REGISTERED}/tts-9").json() == told
    dry = parallel_server.client.post(LOAD, json={**told, "dry_run": True}).json()
    assert (dry["refusal"], dry["loads"], dry["unloads"]) == (None, [], [])
    assert parallel_server.client.post(LOAD, json=registration(parallel_server, slots=2)).status_code == 200


def test_the_slots_alone_are_changed_by_a_registration_that_was_read(unloaded):
    told = unloaded.client.get(f"{REGISTERED}/tts").json()

    assert unloaded.client.post(LOAD, json={**told, "slots": 1}).json() == {"id": "tts", "loaded": True}
    assert unloaded.client.get(f"{REGISTERED}/tts").json() == {**told, "slots": 1}
    assert unloaded.client.post(LOAD, json=told).status_code == 200


def test_a_registration_is_for_who_may_manage_and_of_a_known_model(parallel_server, serial_server):
    assert parallel_server.client.get(f"{REGISTERED}/org%2Ftts%20one").json()["id"] == SLASHED
    assert_refused(parallel_server.client.get(f"{REGISTERED}/nobody"), 404, param="id", code="model_not_found")
    assert_refused(serial_server.client.get(f"{REGISTERED}/nobody"), 403)


def test_unload_of_what_is_not_loaded_is_harmless(unloaded):
    answer = unloaded.client.post(UNLOAD, json={"id": "tts"})
    assert answer.json() == {"id": "tts", "loaded": False, "memory": None}


def test_unload_waits_for_the_earlier_request(parallel_server):
    with parallel_server.steered("run.hold.before the unload") as checkpoint:
        earlier = parallel_server.later("before the unload")
        checkpoint.wait_for("run", text="before the unload")
        unload = parallel_server.threads.submit(lambda: parallel_server.client.post(UNLOAD, json={"id": "tts"}))
        checkpoint.release("run", "before the unload")
        assert earlier.result(HANG_GUARD_S).status_code == 200
        assert unload.result(HANG_GUARD_S).json()["loaded"] is False


@pytest.mark.parametrize(("route", "text"), [(LOAD, "before a load"), (UNLOAD, "before an unload")])
def test_management_waits_as_long_as_its_query_says(parallel_server, route, text):
    with parallel_server.steered(f"run.hold.{text}") as checkpoint:
        earlier = parallel_server.later(text)
        checkpoint.wait_for("run", text=text)

        refused = parallel_server.client.post(f"{route}?busy_timeout_ms=1", json={"id": "tts"})

        assert_refused(refused, 503, code="server_busy")
        checkpoint.release("run", text)
        assert earlier.result(HANG_GUARD_S).status_code == 200
    assert parallel_server.model()["loaded"] is True


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"id": "nobody", "slots": 2}, "family"),
        ({}, "id"),
        ({"id": 7}, "id"),
        ({"id": "tts", "slots": 2}, "family"),
        ({"id": "tts", "strategy": "soon"}, "strategy"),
    ],
    ids=str,
)
def test_load_refuses_a_body_that_is_no_registration(parallel_server, body, param):
    assert_refused(parallel_server.client.post(LOAD, json=body), 400, param=param)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slots", 5),
        ("slots", True),
        ("slots", 17),
        ("path", "/elsewhere"),
        ("task", "sing"),
        ("mode", "sometimes"),
        ("family", "nobody's"),
        ("busy_timeout_ms", -1),
        ("session_options", []),
        ("voice_presets", []),
        ("default_voice_preset", "nobody"),
        ("default_request_options", 7),
    ],
    ids=str,
)
def test_load_refuses_a_field_that_cannot_be_and_changes_nothing(parallel_server, field, value):
    parallel_server.speak("load it")

    refused = parallel_server.client.post(LOAD, json=registration(parallel_server, **{"slots": 2, field: value}))

    assert_refused(refused, 400, param=field)
    assert (parallel_server.model()["loaded"], parallel_server.model()["slots"]) == (True, 2)


@pytest.mark.parametrize("route", [LOAD, UNLOAD])
@pytest.mark.parametrize("options", [{}, {"dry_run": True}], ids=str)
def test_management_of_an_unknown_model_is_not_found(parallel_server, route, options):
    refused = parallel_server.client.post(route, json={"id": "nobody", **options})

    assert_refused(refused, 404, param="id", code="model_not_found")


@pytest.mark.parametrize("route", [LOAD, UNLOAD])
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"])
def test_management_takes_json_alone(parallel_server, route, content_type):
    headers = {"content-type": content_type} if content_type else {}

    refused = parallel_server.client.post(route, content=b'{"id": "tts"}', headers=headers)

    assert_refused(refused, 415, code="unsupported_media_type")


@pytest.mark.parametrize("route", [LOAD, UNLOAD])
@pytest.mark.parametrize("query", ["", "?busy_timeout_ms=soon"])
@pytest.mark.parametrize("content", [b'{"id": "nobody"}', b"{", b""])
def test_management_that_is_off_is_forbidden_before_all_else(serial_server, route, query, content):
    refused = serial_server.client.post(route + query, content=content, headers={"content-type": "text/plain"})

    assert assert_refused(refused, 403).type == "permission_error"


def test_management_that_is_off_is_forbidden_before_the_body_comes(serial_server):
    host = urlsplit(serial_server.process.url)
    head = f"POST {UNLOAD} HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Length: 16\r\n\r\n"

    with socket.create_connection((host.hostname, host.port), timeout=HANG_GUARD_S) as client:
        client.sendall(head.encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 403 ")
        client.sendall(b'{"id": "nobody"}')


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", "1e3", "9007199254740992", "true"])
def test_a_wait_that_is_no_number_of_milliseconds_is_refused(parallel_server, value):
    refused = parallel_server.client.post(f"{UNLOAD}?busy_timeout_ms={value}", json={"id": "tts"})

    assert_refused(refused, 400, param="busy_timeout_ms")


def test_the_openapi_document_lists_the_routes(server):
    document = server.client.get("/openapi.json").json()

    assert document["openapi"].startswith("3.")
    assert {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods} == {
        "GET /health",
        "GET /metrics",
        "GET /health/ready",
        "GET /v1/models",
        "GET /v1/models/{model_id}",
        "POST /v1/models/load",
        "POST /v1/models/unload",
        "POST /v1/audio/speech",
        "POST /v1/audio/transcriptions",
        "POST /v1/audio/transcriptions/live",
        "POST /v1/audio/transcriptions/details",
        "POST /v1/audio/translations",
        "POST /v1/audio/alignments",
        "POST /v1/tasks/run",
        "POST /v1/tasks/stream",
        "POST /v1/tasks/batch",
        "POST /v1/batches/transcriptions",
        "GET /v1/audio/models",
        "GET /v1/audio/voices",
        "GET /v1/status",
        "GET /v1/events",
        "POST /v1/tasks/unload_models",
        "POST /v1/tasks/unload_all_models",
        "GET /v1/ui/models/{model_id}",
        "GET /v1/ui/models_root",
        "POST /v1/ui/models_root",
        "GET /v1/ui/packages",
        "GET /v1/ui/packages/{package_id}/status",
        "POST /v1/ui/packages/install",
        "POST /v1/ui/packages/stop",
        "POST /v1/ui/packages/remove",
    }


def test_the_openapi_document_lists_the_formats_of_speech(server):
    operation = server.client.get("/openapi.json").json()["paths"]["/v1/audio/speech"]["post"]
    field = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]["response_format"]

    assert (field["enum"], field["default"]) == ([*AudioFormat, "json"], "wav")


def test_the_openapi_document_lists_the_formats_of_what_is_heard(server):
    paths = server.client.get("/openapi.json").json()["paths"]

    def formats(path, media_type):
        content = paths[path]["post"]["requestBody"]["content"]
        return content[media_type]["schema"]["properties"]["response_format"]["enum"]

    texts = ["json", "text", "srt", "vtt", "verbose_json"]
    for media_type in ("application/json", "multipart/form-data"):
        assert formats("/v1/audio/translations", media_type) == texts
        assert formats("/v1/audio/transcriptions", media_type) == [*texts, "diarized_json"]


def test_no_route_promises_fastapis_own_refusal(server):
    assert '"422"' not in server.client.get("/openapi.json").text


@pytest.mark.parametrize("path", ["/v1", "/v1/audio/songs", "/v1/audio/speech/", "/%00", "/é"])
def test_an_unknown_route_is_not_found(server, path):
    assert_refused(server.client.get(path), 404, code="not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/health"), ("GET", "/v1/audio/speech"), ("DELETE", "/v1/models"), ("PATCH", "/v1/tasks/run")],
)
def test_a_method_that_a_route_does_not_take_is_named_in_the_allow_header(server, method, path):
    refused = server.client.request(method, path)

    assert_refused(refused, 405, code="method_not_allowed")
    assert refused.headers["allow"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/ui/models_root", "GET, HEAD, POST"),
        ("/v1/models/unload", "GET, HEAD, POST"),  # a model may have that name
        ("/v1/models", "GET, HEAD"),
        ("/v1/audio/speech", "POST"),
    ],
)
def test_a_refused_method_is_told_of_every_other_that_the_path_takes(server, path, methods):
    assert server.client.options(path).headers["allow"] == methods


def test_a_refusal_leaves_a_keep_alive_connection_usable(server):
    with httpx.Client(
        base_url=server.process.url, limits=httpx.Limits(max_connections=1), timeout=HANG_GUARD_S
    ) as client:
        statuses = [client.post("/v1/tasks/run", content=b"{").status_code, client.get("/health").status_code]

    assert statuses == [400, 200]


@pytest.fixture
def named(parallel_server):
    """The model `tts` under another name as well."""
    load = registration(parallel_server, slots=2)
    assert parallel_server.client.post(LOAD, json={**load, "aliases": ["tts-1"]}).status_code == 200
    yield parallel_server
    assert parallel_server.client.post(LOAD, json=load).status_code == 200


def test_an_alias_is_listed_as_a_model_of_its_own_that_says_whose_it_is(named):
    listed = {it["id"]: it for it in named.client.get("/v1/models").json()["data"]}

    assert listed["tts"]["aliases"] == ["tts-1"]
    assert "alias_of" not in listed["tts"]
    assert listed["tts-1"] == {**listed["tts"], "id": "tts-1", "alias_of": "tts"}
    assert named.client.get("/v1/models/tts-1").json() == listed["tts-1"]
    assert named.client.get("/health").json()["models"] == 3
    assert "tts-1" not in {it["id"] for it in named.client.get("/v1/status").json()["models"]}


def test_a_request_for_an_alias_and_a_voice_of_openais_is_served(named):
    assert named.speak("hello", model="tts-1", voice="alloy").content == named.speak("hello").content
    assert_refused(named.speak("hello", model="tts-1", voice="joe"), 400, param="voice")


def test_management_by_an_alias_answers_with_the_id(named):
    assert named.client.post(UNLOAD, json={"id": "tts-1"}).json()["id"] == "tts"
    assert named.client.post(LOAD, json={"id": "tts-1"}).json() == {"id": "tts", "loaded": True}


@pytest.mark.parametrize(("fields", "param"), [({"id": "tts-1"}, "id"), ({"id": "n", "aliases": ["tts-1"]}, "aliases")])
def test_a_registration_with_a_name_of_another_model_is_refused(named, fields, param):
    assert_refused(named.client.post(LOAD, json=registration(named, **fields)), 400, param=param)
    assert named.client.get("/v1/models/n").status_code == 404
