"""The log and the request ids of real servers: one line a request, over every way in, and no line that was made up."""

import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from conformance_client import eventually
from controlled_server import SPEECH, controlled_server
from isolated_server import isolated_server, kill_worker
from live_client import LIVE, live_client
from server_process import HANG_GUARD_S, antiphon, running_server
from websocket_clients import connect

TENTH = bytes(2 * 1600)
FORGED = "/x\n2026-01-01 00:00:00.000 INFO antiphon.models: forged"


def lines(server):
    """The log of a server that writes JSON, but for what it says before it logs."""
    return [json.loads(it) for it in server.process.log.read_text().splitlines() if it.startswith("{")]


def line_of(server, request_id):
    """The line of a request that has been answered; the log is copied a little later."""
    while True:
        for line in lines(server):
            if line["logger"] == "antiphon.requests" and line["request_id"] == request_id:
                return line
        assert server.process.process.poll() is None


def named(request_id):
    return {"x-request-id": request_id}


@pytest.fixture(scope="module", params=["thread", "process"])
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logging")
    flags = {"isolation": request.param}
    with controlled_server(folder, parallel=True, flags=["--log-format", "json"], **flags) as server:
        yield server


def test_an_inference_leaves_its_line(server):
    answer = server.client.post(SPEECH, json={"model": "tts", "input": "x"}, headers=named("spoken"))
    assert answer.headers["x-request-id"] == "spoken"
    line = line_of(server, "spoken")
    assert (line["message"], line["status"], line["model"]) == (f"POST {SPEECH}", 200, "tts")
    assert line["bytes_out"] == len(answer.content)
    assert min(line[f"{phase}_ms"] for phase in ("duration", "queue", "load", "run")) >= 0
    assert "error" not in line


def test_a_load_is_told_with_the_request_that_asked_for_it(server):
    assert server.client.post("/v1/tasks/run", json={"model": "org/tts one", "request": {"text": "x"}},
                              headers=named("loads")).status_code == 200  # fmt: skip
    line_of(server, "loads")
    told = [it["message"] for it in lines(server) if it.get("request_id") == "loads"]
    assert told[:2] == ["org/tts one: unloaded -> loading", "org/tts one: loading -> ready"]


def test_a_refusal_names_its_request_and_its_model(server):
    refused = server.client.post(SPEECH, json={"model": "tts", "input": "x", "voice": "no"}, headers=named("refused"))
    assert (refused.status_code, refused.headers["x-request-id"]) == (400, "refused")
    line = line_of(server, "refused")
    assert (line["status"], line["error"], line["model"]) == (400, "invalid_request_error", "tts")


def test_a_stream_leaves_its_line_at_its_end(server):
    body = {"model": "tts", "input": "x", "stream_format": "sse"}
    assert server.client.post(SPEECH, json=body, headers=named("streamed")).text.endswith("[DONE]\n\n")
    assert line_of(server, "streamed")["run_ms"] >= 0


def test_live_audio_leaves_one_line(server):
    with live_client(server.process.url, "X-Request-Id: live", model="asr") as client:
        client.say(TENTH)
        client.end()
        client.events()
        assert client.fields["x-request-id"] == "live"
    line = line_of(server, "live")
    assert (line["route"], line["bytes_in"], line["model"]) == (LIVE, len(TENTH), "asr")


def test_a_websocket_leaves_one_line(server):
    url = server.process.url.replace("http", "ws") + f"{LIVE}?model=asr"
    with connect(url, additional_headers=named("talked")) as talk:
        assert talk.response.headers["x-request-id"] == "talked"
        talk.send(TENTH)
        talk.send(b"")
        assert list(talk)
    line = line_of(server, "talked")
    assert (line["status"], line["route"], line["bytes_in"]) == (101, LIVE, len(TENTH))


def test_a_websocket_that_is_refused_has_its_id(server):
    url = server.process.url.replace("http", "ws") + LIVE
    with pytest.raises(InvalidStatus) as refusal:
        connect(url, additional_headers=named("not-talked"))
    assert refusal.value.response.headers["x-request-id"] == "not-talked"
    assert line_of(server, "not-talked")["status"] == 400


def test_what_is_no_request_is_answered_with_an_id_that_the_log_has(server):
    place = urlsplit(server.process.url)
    with socket.create_connection((place.hostname, place.port), timeout=HANG_GUARD_S) as client:
        client.sendall(b"no HTTP at all\r\n\r\n")
        fields = client.makefile("rb").read().split(b"\r\n\r\n")[0].decode().splitlines()[1:]
    request_id = dict(it.split(": ", 1) for it in fields)["x-request-id"]
    assert line_of(server, request_id)["error"] == "invalid_request_error"


def test_nobody_can_write_a_line(tmp_path):
    with running_server(tmp_path, {"models": []}) as server:
        httpx.get(server.url + FORGED.replace("\n", "%0a").replace(" ", "%20"), timeout=HANG_GUARD_S)
        httpx.get(f"{server.url}/v1/models", headers={"x-request-id": "y INFO forged"}, timeout=HANG_GUARD_S)
        text = eventually(server.log.read_text, lambda it: "/v1/models status=200" in it, "its line")
    assert FORGED.replace("\n", "\\n") in text
    assert not [it for it in text.splitlines() if it.startswith("2026-01-01") or "INFO forged" in it]


def test_bodies_and_keys_stay_out_of_the_log(tmp_path):
    config = {"models": [], "api_keys": ["the-key"]}
    for flags, is_logged in (([], False), (["--log-bodies"], True)):
        with running_server(tmp_path, config, "--log-level", "debug", *flags) as server:
            secret = {"authorization": "Bearer the-key"}
            body = {"model": "m", "input": "what is said"}
            httpx.post(f"{server.url}{SPEECH}?k=the-key", json=body, headers=secret, timeout=HANG_GUARD_S)
            text = eventually(server.log.read_text, lambda it: f"POST {SPEECH} status=404" in it, "its line")
        assert "the-key" not in text
        assert ("what is said" in text) is is_logged


@pytest.mark.parametrize(("flag", "value"), [("--log-format", "xml"), ("--log-level", "loud")])
def test_another_form_or_level_is_refused(flag, value):
    done = antiphon("serve", flag, value)
    assert done.returncode == 2
    assert flag in done.stderr


def test_the_death_of_a_worker_is_not_of_the_request_that_it_was_started_for(tmp_path):
    with isolated_server(tmp_path, flags=["--log-format", "json"]) as server:
        asked = {"model": "tts", "input": "x"}
        assert server.client.post(SPEECH, json=asked, headers=named("starter")).status_code == 200
        kill_worker(server.checkpoints["tts"])
        faults = eventually(lambda: [it for it in lines(server) if it["level"] == "error"], bool, "an error")
    assert "tts: run failed" in faults[0]["message"]
    assert "request_id" not in faults[0]
