"""SEC-02 and the rules of binding, on real servers: who may unload, where a server listens, what its log tells."""

import json

import httpx
import psutil
import pytest

from refusals import assert_refused
from server_process import HANG_GUARD_S, antiphon, error_lines, running_server

KEY, ADMIN = "the-key-of-this-test", "the-admin-key-of-this-test"
MANAGEMENT = [
    ("/v1/models/load", {"id": "m"}),
    ("/v1/models/unload", {"id": "m"}),
    ("/v1/tasks/unload_models", {"model_ids": ["m"]}),
    ("/v1/tasks/unload_all_models", {}),
]
UI = [
    ("GET", "/v1/ui/models/tts"),
    ("GET", "/v1/ui/models_root"),
    ("POST", "/v1/ui/models_root"),
    ("GET", "/v1/ui/packages"),
    ("GET", "/v1/ui/packages/nobody/status"),
    ("POST", "/v1/ui/packages/install"),
    ("POST", "/v1/ui/packages/stop"),
    ("POST", "/v1/ui/packages/remove"),
]
NO_KEY = [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {KEY}"}, {"api-key": KEY}]
SPEECH = {"model": "m", "input": "x"}


def config(folder, **fields):
    (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts"}
    return {"models": [model], "ui_management": True, **fields}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def refused_at_start(tmp_path, *flags, env=None, **fields):
    """The one line that a server leaves with."""
    file = tmp_path / "server.json"
    file.write_text(json.dumps(config(tmp_path, port=0, **fields)))
    done = antiphon("serve", "--config", str(file), *flags, env=env)
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


def test_nobody_unloads_in_a_loop(guarded):
    _, client = guarded
    for _ in range(20):
        for path, body in MANAGEMENT[1:]:
            assert_refused(client.post(path, json=body), 401)
            assert_refused(client.post(path, content=json.dumps(body), headers={"content-type": "text/plain"}), 401)
            plain = {**bearer(KEY), "content-type": "text/plain"}
            refused = client.post(path, content=json.dumps(body), headers=plain)
            assert_refused(refused, 415, code="unsupported_media_type")
    assert client.get("/v1/models/m", headers=bearer(KEY)).json()["loaded"] is True


@pytest.fixture(scope="module")
def administered(tmp_path_factory):
    """A server whose management asks for an admin key, of a file; ordinary keys come from one, too."""
    folder = tmp_path_factory.mktemp("administered")
    (folder / "admins").write_text(f"# one of us\n{ADMIN}\n")
    (folder / "callers").write_text(f"{KEY}\n")
    settings = config(folder, host="0.0.0.0", api_keys_file="callers", lazy_load=True)
    keys = {"ANTIPHON_ADMIN_KEYS": "of-the-environment"}
    with (
        running_server(folder, settings, "--admin-keys-file", "admins", env=keys) as server,
        httpx.Client(timeout=HANG_GUARD_S) as client,
    ):
        client.base_url, client.timeout = server.url.replace("0.0.0.0", "127.0.0.1"), HANG_GUARD_S
        yield server, client


EVERY_MANAGEMENT = [*(("POST", path) for path, _ in MANAGEMENT), *UI]


@pytest.mark.parametrize(("method", "path"), EVERY_MANAGEMENT)
def test_management_asks_for_an_admin_key_before_all_else(administered, method, path):
    _, client = administered
    broken = {"content": b"{", "headers": {"content-type": "text/plain"}}
    assert_refused(client.request(method, path, **broken), 401)

    ordinary = {**broken, "headers": {**broken["headers"], **bearer(KEY)}}
    refusal = assert_refused(client.request(method, path, **ordinary), 403)

    assert refusal.type == "permission_error"
    assert "admin key" in refusal.message
    assert KEY not in refusal.message


@pytest.mark.parametrize("path", ["/v1//models/unload", "/v1///models/unload"])
def test_another_spelling_of_the_path_asks_for_the_same_key(administered, path):
    _, client = administered
    assert_refused(client.post(path, json={"id": "nobody"}, headers=bearer(KEY)), 403)


@pytest.mark.parametrize("key", [ADMIN, "of-the-environment"], ids=["file", "environment"])
def test_an_admin_key_manages_and_calls(administered, key):
    _, client = administered
    assert client.post("/v1/models/load", json={"id": "m"}, headers=bearer(key)).json() == {"id": "m", "loaded": True}
    assert client.post("/v1/audio/speech", json=SPEECH, headers=bearer(key)).status_code == 200
    assert client.get("/v1/ui/packages", headers=bearer(key)).status_code == 200


def test_an_ordinary_key_still_calls(administered):
    _, client = administered
    assert client.post("/v1/audio/speech", json=SPEECH, headers=bearer(KEY)).status_code == 200


def test_keys_of_files_and_of_the_environment_stand_in_no_log_and_no_list_of_processes(administered):
    server, _ = administered
    told = server.log.read_text() + " ".join(psutil.Process(server.process.pid).cmdline())
    assert not any(secret in told for secret in (KEY, ADMIN, "of-the-environment"))


def test_engines_do_not_inherit_the_keys_of_the_environment(tmp_path):
    settings = config(tmp_path, isolation="process", lazy_load=True)
    keys = {"ANTIPHON_API_KEYS": KEY, "ANTIPHON_ADMIN_KEYS": ADMIN}
    with running_server(tmp_path, settings, env=keys) as server:
        url = f"{server.url}/v1/audio/speech"
        assert httpx.post(url, json=SPEECH, headers=bearer(KEY), timeout=HANG_GUARD_S).status_code == 200
        workers = psutil.Process(server.process.pid).children(recursive=True)
        assert workers
        for worker in workers:
            assert not keys.keys() & worker.environ().keys()


def test_admin_keys_alone_guard_management_and_nothing_else(tmp_path):
    with running_server(tmp_path, config(tmp_path, admin_keys=[ADMIN], lazy_load=True)) as server:
        unload = f"{server.url}/v1/models/unload"
        assert httpx.post(f"{server.url}/v1/audio/speech", json=SPEECH, timeout=HANG_GUARD_S).status_code == 200
        refused = httpx.post(unload, json={"id": "m"}, timeout=HANG_GUARD_S)
        assert_refused(refused, 401)
        assert refused.headers["www-authenticate"] == "Bearer"
        assert httpx.post(unload, json={"id": "m"}, headers=bearer(ADMIN), timeout=HANG_GUARD_S).status_code == 200


def test_admin_keys_alone_do_not_let_a_server_listen_beyond_this_machine(tmp_path):
    assert "no API key is set" in refused_at_start(tmp_path, host="0.0.0.0", admin_keys=[ADMIN])


def test_an_admin_key_does_not_manage_where_management_is_off(tmp_path):
    with running_server(tmp_path, config(tmp_path, ui_management=False, admin_keys=[ADMIN], models=[])) as server:
        for headers in ({}, bearer(ADMIN)):
            url = f"{server.url}/v1/models/unload"
            assert_refused(httpx.post(url, json={"id": "m"}, headers=headers, timeout=HANG_GUARD_S), 403)


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
        assert httpx.get(f"{url}/health", headers={"host": "speech.example"}, timeout=HANG_GUARD_S).status_code == 200


def test_on_an_open_server_no_name_of_the_internet_reaches_anything_but_health(tmp_path):
    fields = config(tmp_path, host="0.0.0.0", insecure=True, allowed_hosts=["Speech.example"])
    with running_server(tmp_path, fields, "--allowed-host", "other.example") as server:
        port = server.url.rpartition(":")[2]

        def unload(name, **headers):
            host = {"host": f"{name}:{port}", **headers}
            url = f"http://127.0.0.1:{port}/v1/tasks/unload_all_models"
            return httpx.post(url, json={}, headers=host, timeout=HANG_GUARD_S)

        refusal = assert_refused(unload("evil.example"), 403)
        assert "allowed_hosts" in refusal.message
        assert_refused(unload("127.0.0.1", origin="http://evil.example"), 403)
        assert_refused(unload("speech.example"), 403)  # the flag wins over the file
        assert [unload(name).status_code for name in ("127.0.0.1", "nas", "nas.local", "other.example")] == [200] * 4


def test_a_local_server_may_be_called_by_a_name_that_is_listed(tmp_path):
    fields = config(tmp_path, models=[], allowed_hosts=["speech.example"])
    with running_server(tmp_path, fields) as server:
        asked = [
            httpx.get(f"{server.url}/v1/models", headers={"host": name}, timeout=HANG_GUARD_S).status_code
            for name in ("speech.example", "evil.example")
        ]
    assert asked == [200, 403]


def test_a_key_in_a_flag_wins_over_the_environment_and_the_file(tmp_path):
    files, flags = config(tmp_path, api_keys=["of-the-file"]), ["--api-key", "of-the-flag"]
    with running_server(tmp_path, files, *flags, env={"ANTIPHON_API_KEYS": "of-the-environment"}) as server:
        statuses = [
            httpx.get(f"{server.url}/v1/models", headers=bearer(f"of-the-{place}"), timeout=HANG_GUARD_S).status_code
            for place in ("file", "environment", "flag")
        ]
    assert statuses == [401, 401, 200]


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(tmp_path):
    line = refused_at_start(tmp_path, "--api-key", "two words")
    assert line.startswith("antiphon: --api-key or ANTIPHON_API_KEYS: wanted ")
    assert "two words" not in line


@pytest.mark.parametrize("text", ["", " , "])
@pytest.mark.parametrize("variable", ["ANTIPHON_API_KEYS", "ANTIPHON_ADMIN_KEYS"])
def test_a_variable_that_is_set_and_holds_no_key_starts_no_server(tmp_path, variable, text):
    line = refused_at_start(tmp_path, env={variable: text})
    assert f"{variable}: wanted a list of 1 or more API keys" in line


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_a_foreign_page_cannot_use_a_local_server(parallel_server, headers):
    refusal = assert_refused(parallel_server.client.post("/v1/tasks/unload_all_models", json={}, headers=headers), 403)
    assert refusal.type == "permission_error"
    assert_refused(parallel_server.client.get("/health", headers=headers), 403)
