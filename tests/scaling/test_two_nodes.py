"""One server over two replicas on two nodes of Ray: which one answers, what all do, and what becomes of one's end."""

import json
import signal

import httpx
import psutil
import pytest
from playwright.sync_api import expect
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from browser import chromium, visit
from conformance_client import eventually
from controlled_server import SPEECH
from leaving_client import asking_for_speech
from live_client import LIVE, live_client
from scaled_server import API_KEY, MODELS, scaled_server
from server_process import HANG_GUARD_S
from websocket_clients import connect

pytestmark = pytest.mark.slow

TENTH = bytes(2 * 1600)


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    with scaled_server(tmp_path_factory.mktemp("scaled")) as server:
        yield server


@pytest.fixture
def server(scaled):
    """It, with both replicas and nothing loaded."""
    eventually(lambda: scaled.client.get("/health/ready").status_code, lambda it: it == 200, "a new replica")
    assert scaled.manage("/v1/tasks/unload_all_models", {}).status_code == 200
    return scaled


def test_requests_go_where_their_model_is_in_memory(server):
    for text in ("a", "b", "c"):
        for model in ("first", "second"):
            assert server.speak(model, text).status_code == 200
        assert len(server.holders("first")) == len(server.holders("second")) == 1


def test_a_form_names_its_model_wherever_it_likes(server):
    answers = [server.transcribe() for _ in range(3)]
    assert [it.status_code for it in answers] == [200] * 3
    assert len(server.holders("asr")) == 1


def test_a_second_replica_loads_it_when_every_slot_of_the_first_is_taken(server):
    checkpoint = server.checkpoints["first"]
    with checkpoint.held("run", "long"):
        long = server.later("first", "long")
        checkpoint.wait_for("run", text="long")
        assert server.speak("first", "short").status_code == 200
        assert len(server.holders("first")) == 2
        leases = sorted(len(it["leases"]) for it in server.status("first").values())
        assert leases == [0, 1]
    assert long.result().status_code == 200


def test_the_page_shows_the_replica_that_is_chosen(server):
    assert server.speak("first", "a").status_code == 200
    (holder,) = server.holders("first")
    (other,) = server.status("first").keys() - {holder}
    with chromium() as browser, visit(browser, f"{server.url}/#/models") as page:
        dialog = page.get_by_role("dialog", name="Key")
        dialog.get_by_label("API key").fill(API_KEY)
        dialog.get_by_role("button", name="Use this key").click()
        for replica, state in ((holder, "ready"), (other, "unloaded")):
            page.get_by_label("Replica").select_option(replica)
            expect(page.locator("[data-model=first]")).to_have_attribute("data-state", state)


def test_a_change_is_made_at_every_replica_and_told_once(server):
    new = {"id": "third", "family": "controlled", "path": str(server.checkpoints["third"].path), "task": "tts"}
    answer = server.manage("/v1/models/load", {**new, "aliases": ["another"]})
    assert answer.status_code == 200
    said = answer.json()
    assert (said["id"], said["loaded"]) == ("third", True)
    assert said["replicas"].keys() == server.holders("third")
    assert len(said["replicas"]) == 2
    assert server.speak("another", "x").status_code == 200


def test_a_dry_run_is_one_everywhere(server):
    said = server.manage("/v1/models/unload", {"id": "first", "dry_run": True}).json()
    assert said["dry_run"] is True
    assert len(said["replicas"]) == 2


def test_what_all_refuse_alike_is_the_ordinary_refusal(server):
    answer = server.manage("/v1/models/unload", {"id": "nobody"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert "replicas" not in answer.json()


def test_a_change_that_one_replica_refuses_is_an_error_that_names_both(server):
    checkpoint = server.checkpoints["first"]
    with checkpoint.held("run", "busy"):
        busy = server.later("first", "busy")
        checkpoint.wait_for("run", text="busy")
        answer = server.manage("/v1/models/unload", {"id": "first"}, busy_timeout_ms=1)
    assert busy.result().status_code == 200
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "partial_change"
    told = answer.json()["replicas"]
    assert sorted(it["status"] for it in told.values()) == [200, 503]
    (refused,) = [it["answer"]["error"] for it in told.values() if it["status"] == 503]
    assert refused["code"] == "server_busy"
    assert all(name in answer.json()["error"]["message"] for name, it in told.items() if it["status"] == 503)


def test_speech_is_heard_while_it_is_made(server):
    checkpoint = server.checkpoints["first"]
    with checkpoint.held("stream"):
        body = {"model": "first", "input": "x", "stream_format": "sse"}
        with server.client.stream("POST", SPEECH, json=body) as answer:
            lines = (line for line in answer.iter_lines() if line)
            assert json.loads(next(lines).removeprefix("data: "))["type"] == "speech.audio.delta"
            checkpoint.release("stream")
            assert list(lines)[-1] == "data: [DONE]"


def test_a_client_that_leaves_frees_its_slot(server):
    checkpoint = server.checkpoints["first"]
    checkpoint.set("run.cancellable")
    with checkpoint.held("run", "left"):
        with asking_for_speech(server.url, {"model": "first", "input": "left"}, API_KEY):
            checkpoint.wait_for("run", text="left")
        free = eventually(lambda: server.status("first"), is_idle, "a free slot")
    checkpoint.unset("run.cancellable")
    assert len(free) == 2


def is_idle(standing):
    return not any(it["leases"] or it["queue"] for it in standing.values())


def test_live_audio_is_transcribed_over_a_websocket(server):
    with live_socket(server) as socket:
        socket.send(TENTH)
        assert json.loads(socket.recv(HANG_GUARD_S)) == {"type": "transcript.text.delta", "delta": "1 "}
        socket.send(json.dumps({"type": "end"}))
        assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "transcript.text.done"


def live_socket(server):
    url = f"{server.url.replace('http', 'ws')}{LIVE}?model=asr"
    return connect(url, additional_headers={"authorization": f"Bearer {API_KEY}"})


def test_live_audio_is_transcribed_while_its_body_comes(server):
    with live_client(server.url, f"Authorization: Bearer {API_KEY}", model="asr") as client:
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "1 "}
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "2 "}
        client.end()
        done, mark = client.events()
    assert (done["text"], mark) == ("1 2 ", {})


def test_without_a_key_nothing_is_asked_of_a_replica(server):
    refused = server.client.post(SPEECH, json={"model": "first", "input": "x"}, headers={"authorization": ""})
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    denied = server.client.post("/v1/models/unload", json={"id": "first"})
    assert (denied.status_code, denied.json()["error"]["type"]) == (403, "permission_error")


def test_a_replica_answers_to_nobody_but_its_front(server):
    assert server.speak("first", "x").status_code == 200
    listening = [it for it in server.replica_of("first").net_connections("tcp") if it.status == psutil.CONN_LISTEN]
    (node,) = {it["node"] for it in server.client.get("/v1/status").json()["replicas"]}
    answers = [status_of(f"http://{node}:{it.laddr.port}/health") for it in listening]
    assert 403 in answers
    assert 200 not in answers


def status_of(url):
    """What is answered to who has a client's key; None where no HTTP is spoken: Ray listens there, too."""
    try:
        return httpx.get(url, headers={"authorization": f"Bearer {API_KEY}"}, timeout=HANG_GUARD_S).status_code
    except httpx.HTTPError:
        return None


def test_every_number_says_whose_it_is(server):
    page = server.client.get("/metrics").text
    labelled = [line for line in page.splitlines() if line.startswith("antiphon_build_info{")]
    names = [it["name"] for it in server.client.get("/v1/status").json()["replicas"]]
    assert len(labelled) == 2
    assert all(f'replica="{name}"' in page for name in names)


def test_a_caller_who_may_not_manage_is_refused_before_its_body_is_read(server):
    refused = server.client.post("/v1/models/load", content=b"no json, and never read")
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")


def test_one_replica_can_be_asked_by_its_name(server):
    names = [it["name"] for it in server.client.get("/v1/status").json()["replicas"]]
    own = server.client.get("/v1/status", params={"replica": names[0]}).json()
    assert [it["id"] for it in own["models"]] == list(MODELS)
    assert "replica" not in own["models"][0]
    assert server.client.get("/v1/events").json()["error"]["param"] == "replica"
    with server.client.stream("GET", "/v1/events", params={"replica": names[0]}) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        assert next(events.iter_lines()) == ": all is well"


def test_a_request_at_a_replica_that_dies_is_told_and_the_next_is_served(server):
    checkpoint = server.checkpoints["first"]
    with checkpoint.held("run", "doomed"):
        doomed = server.later("first", "doomed")
        worker = psutil.Process(checkpoint.wait_for("run", text="doomed").pid)
        worker.parent().kill()
        answer = doomed.result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_died")
    assert "retry-after" in answer.headers
    assert server.speak("first", "next").status_code == 200
    worker.wait(HANG_GUARD_S)


def test_a_live_session_at_a_replica_that_dies_is_told(server):
    with live_socket(server) as socket:
        socket.send(TENTH)
        socket.recv(HANG_GUARD_S)
        server.replica_of("asr").kill()
        said = json.loads(socket.recv(HANG_GUARD_S))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(HANG_GUARD_S)
    assert (said["type"], said["error"]["code"]) == ("error", "worker_died")
    assert closed.value.rcvd.code == CloseCode.TRY_AGAIN_LATER


def test_a_replica_that_died_is_replaced(scaled):
    ready = eventually(lambda: scaled.client.get("/health/ready"), lambda it: it.status_code == 200, "a new replica")
    assert ready.json()["replicas"] == {"ready": 2, "wanted": 2}
    assert scaled.manage("/v1/tasks/unload_all_models", {}).status_code == 200


def test_a_stop_lets_what_was_accepted_end(server):
    """The very last one."""
    checkpoint = server.checkpoints["first"]
    with checkpoint.held("run", "accepted"):
        accepted = server.later("first", "accepted")
        checkpoint.wait_for("run", text="accepted")
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: is_refused(server), bool, "a refusal")
    assert accepted.result().status_code == 200
    assert server.process.wait(HANG_GUARD_S) == 0


def is_refused(server):
    try:
        httpx.get(f"{server.url}/health", timeout=HANG_GUARD_S)
    except httpx.ConnectError:
        return True
    return False
