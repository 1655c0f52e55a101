"""SEC-02 and the rules of binding, on real servers: who may unload, where a server listens, what its log tells."""

import json

import httpx
import pytest

from refusals import assert_refused
from server_process import HANG_GUARD_S, antiphon, error_lines, running_server

KEY = "the-key-of-this-test"
MANAGEMENT = [
    ("/v1/models/load", {"id": "m"}),
    ("/v1/models/unload", {"id": "m"}),
    ("/v1/tasks/unload_models", {"model_ids": ["m"]}),
    ("/v1/tasks/unload_all_models", {}),
]
NO_KEY = [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {KEY}"}, {"api-key": KEY}]
SPEECH = {"model": "m", "input": "x"}


def config(folder, **fields):
    (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts"}
    return {"models": [model], "ui_management": True, **fields}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def refused_at_start(tmp_path, *flags, **fields):
    """The one line that a server leaves with."""
    file = tmp_path / "server.json"
    file.write_text(json.dumps(config(tmp_path, port=0, **fields)))
    done = antiphon("serve", "--config", str(file), *flags)
    assert done.returncode == 1
    assert done.stderr.splitlines() == error_lines(done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server on every address with a key; its model is loaded."""
    folder = tmp_path_factory.mktemp("guarded")
    with running_server(
        folder, config(folder, host="0.0.0.0"), "--log-level", "debug", env={"ANTIPHON_API_KEYS": f" {KEY} ,other-key"}
    ) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(base_url=url, timeout=HANG_GUARD_S) as client:
            assert client.post("/v1/audio/speech", json=SPEECH, headers=bearer(KEY)).status_code == 200
            yield server, client


@pytest.mark.parametrize(("path", "body"), MANAGEMENT)
@pytest.mark.parametrize("headers", NO_KEY, ids=["none", "wrong", "basic", "another_header"])
def test_nobody_manages_without_the_key(guarded, path, body, headers):
    _, client = guarded
    refusal = assert_refused(client.post(path, json=body, headers=headers), 401)
    assert refusal.type == "authentication_error"
    assert client.get("/v1/models/m", headers=bearer(KEY)).json()["loaded"] is True


@pytest.mark.parametrize("path", ["/v1/models/unload", "/v1/tasks/unload_all_models"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_nobody_manages_with_what_a_page_can_send_without_asking(guarded, path, content_type):
    _, client = guarded
    headers = {**bearer(KEY), "content-type": content_type}
    assert_refused(client.post(path, content=b'{"id": "m"}', headers=headers), 415, code="unsupported_media_type")
    assert client.get("/v1/models/m", headers=bearer(KEY)).json()["loaded"] is True


@pytest.mark.parametrize(("path", "body"), MANAGEMENT)
def test_nobody_manages_where_that_is_off(serial_server, path, body):
    assert_refused(serial_server.client.post(path, json=body), 403)


def test_health_answers_without_a_key(guarded):
    _, client = guarded
    assert client.get("/health").json() == {"status": "ok", "models": 1}


@pytest.mark.parametrize("path", ["/v1/models", "/v1//models", "/v1/status", "/openapi.json", "/docs", "/nowhere"])
def test_nothing_else_does(guarded, path):
    _, client = guarded
    answer = client.get(path)
    assert_refused(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


def test_any_name_will_do_for_a_server_that_asks_for_a_key(guarded):
    _, client = guarded
    headers = {**bearer("other-key"), "host": "speech.example", "origin": "https://speech.example"}
    assert client.get("/v1/models", headers=headers).status_code == 200


def test_a_refused_upload_can_read_why(guarded):
    _, client = guarded
    answer = client.post("/v1/audio/transcriptions", files={"file": ("a.wav", bytes(8_000_000))}, data={"model": "m"})
    assert_refused(answer, 401)


def test_the_log_never_tells_a_key(guarded):
    server, client = guarded
    assert client.get("/v1/models", headers=bearer(f"{KEY}-almost")).status_code == 401
    assert KEY not in server.log.read_text()


def test_a_server_that_others_can_reach_does_not_start_without_a_key(tmp_path):
    line = refused_at_start(tmp_path, host="0.0.0.0")
    assert line.startswith("antiphon: host: 0.0.0.0 can be reached from other machines")
    assert "--api-key" in line
    assert "--insecure" in line


@pytest.mark.parametrize("flags", [["--insecure"], ["--api-key", KEY, "--api-key", "another"]], ids=["word", "keys"])
def test_a_key_or_a_word_lets_it_start(tmp_path, flags):
    with running_server(tmp_path, config(tmp_path, host="0.0.0.0", models=[]), *flags) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/health", headers={"host": "speech.example"}).status_code == 200


def test_a_key_in_a_flag_wins_over_the_environment_and_the_file(tmp_path):
    files, flags = config(tmp_path, api_keys=["of-the-file"]), ["--api-key", "of-the-flag"]
    with running_server(tmp_path, files, *flags, env={"ANTIPHON_API_KEYS": "of-the-environment"}) as server:
        statuses = [
            httpx.get(f"{server.url}/v1/models", headers=bearer(f"of-the-{place}")).status_code
            for place in ("file", "environment", "flag")
        ]
    assert statuses == [401, 401, 200]


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(tmp_path):
    line = refused_at_start(tmp_path, "--api-key", "two words")
    assert line.startswith("antiphon: --api-key: wanted ")
    assert "two words" not in line


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_a_foreign_page_cannot_use_a_local_server(parallel_server, headers):
    refusal = assert_refused(parallel_server.client.post("/v1/tasks/unload_all_models", json={}, headers=headers), 403)
    assert refusal.type == "permission_error"
    assert_refused(parallel_server.client.get("/health", headers=headers), 403)
