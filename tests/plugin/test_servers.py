"""What conformance tests stand on: calls that overlap, connections that are cut, and servers that are left clean."""

import socket

import pytest

import conformance_client
from conformance_client import eventually
from conformance_server import CONFIGURATIONS, SharedServers, answer_of, start_server

STREAM = {"model": "a", "input": "flow", "stream_format": "sse"}
SPEECH = "/v1/audio/speech"


def _start(folder):
    return start_server(folder, CONFIGURATIONS["default"], slots=2, isolation="thread", models={"a": {"slots": 2}})


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = _start(tmp_path_factory.mktemp("running"))
    yield server
    server.close()


@pytest.fixture
def model(running):
    """The model `a` of a server that is settled afterwards."""
    yield running.configured_model("a")
    running.settle()


def test_calls_overlap_for_as_long_as_the_test_wants(running, model):
    with model.checkpoint.held("run"):
        calls = [model.infer(text) for text in ("one", "two")]
        model.wait_listed(active_slots=2, queued_requests=0)
        model.checkpoint.wait_for("run", count=2)
        third = model.infer("three")
        model.wait_listed(queued_requests=1)
        assert not third.has_ended()

    assert [answer_of(call).text for call in [*calls, third]] == ["one", "two", "three"]
    assert model.runs()[-1] == "three"
    assert answer_of(third).revision == "v1"
    assert running.alive


def test_ok_wants_a_200_and_shows_what_came_instead(running, model):
    with pytest.raises(AssertionError, match=r"404 .*model_not_found"):
        running.client.start("POST", "/v1/tasks/run", json={"model": f"no {model.id}", "request": {}}).ok()


def test_an_answer_that_does_not_come_is_an_assertion(model):
    with model.checkpoint.held("run"):
        call = model.infer("late")
        with pytest.raises(AssertionError, match="no answer to POST /v1/tasks/run"):
            call.result(timeout_s=0)


def test_a_connection_error_is_the_tests_to_judge(tmp_path):
    server = _start(tmp_path)
    model = server.configured_model("a")
    model.checkpoint.hold("run")
    call = model.infer("cut")
    model.wait_listed(active_slots=1)

    server.kill()

    with pytest.raises(conformance_client.httpx.TransportError):
        call.result()
    server.close()


def test_a_streams_events_come_one_by_one(running, model):
    with model.checkpoint.held("stream"):
        opened = running.client.open("POST", SPEECH, json=STREAM)
        events = opened.events()
        assert next(events)["type"] == "speech.audio.delta"
        model.checkpoint.wait_for("stream", text="flow")

    assert [event["type"] for event in events][-1] == "speech.audio.done"


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_that_is_cut_ends_the_stream(running, model, reset):
    with model.checkpoint.held("stream"):
        opened = running.client.open("POST", SPEECH, json=STREAM)
        next(opened.events())
        opened.cut(reset=reset)
        opened.cut()
    model.wait_listed(active_slots=0)


def test_a_bare_connection_says_what_it_likes(running):
    with running.client.connect() as bare:
        bare.sendall(b"nonsense\r\n\r\n")
        assert bare.recv(4096).startswith(b"HTTP/1.1 400")
        assert isinstance(bare, socket.socket)


def test_a_state_that_never_comes_is_shown_as_it_was_last_seen(monkeypatch):
    monkeypatch.setattr(conformance_client, "HANG_GUARD_S", 0.0)

    with pytest.raises(AssertionError, match="seven did not come; last seen: 6"):
        eventually(lambda: 6, lambda seen: seen == 7, "seven")


def test_settling_lets_go_of_everything(running):
    model = running.configured_model("a")
    model.checkpoint.hold("run")
    call = model.infer("held")
    model.wait_listed(active_slots=1)

    running.settle()

    assert call.result(timeout_s=0).status_code == 200
    assert model.listed()["loaded"] is False
    assert running.models == []


def test_a_server_with_a_hung_engine_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("conformance_server.SETTLE_S", 0.3)
    server = _start(tmp_path)
    model = server.configured_model("a")
    model.checkpoint.set("run.hang")
    model.infer("for ever")
    model.wait_listed(active_slots=1)

    with pytest.raises(AssertionError, match=r"so its server was killed: .*for ever"):
        server.settle()

    assert not server.alive
    server.close()


def test_a_server_that_dies_by_itself_is_reported_with_its_last_words(tmp_path):
    server = _start(tmp_path)
    server.process.process.kill()
    server.process.process.wait()

    with pytest.raises(AssertionError, match=r"the server died during the test:\n(.|\n)*antiphon is listening"):
        server.settle()
    with pytest.raises(AssertionError, match="exit code -9"):
        server.close()


def test_tests_share_a_server_until_it_dies(tmp_path):
    servers = SharedServers(tmp_path)
    first = servers.get("default", slots=2, isolation="thread")
    assert servers.get("default", slots=2, isolation="thread") is first

    first.kill()

    second = servers.get("default", slots=2, isolation="thread")
    assert second is not first
    assert second.alive
    servers.close()
    assert not second.alive
