"""`GET /v1/events` of real servers: who follows misses nothing, and is told where he does."""

import asyncio
import json
import signal
from contextlib import contextmanager

import pytest
from fastapi import FastAPI

from antiphon.http.routes.events import add_events_route
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.testing import ManualClock
from controlled_server import controlled_server
from refusals import assert_refused

EVENTS, STATUS = "/v1/events", "/v1/status"


@contextmanager
def following(server, headers=(), **query):
    """Events as (id, data), heartbeats as (id, None); the first one is there already."""
    with server.client.stream("GET", EVENTS, params=query, headers=dict(headers)) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        yield pieces(answer)


def pieces(answer):
    event_id = data = None
    for line in answer.iter_lines():
        if line.startswith("id: "):
            event_id = line.removeprefix("id: ")
        elif line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
        elif not line:
            yield event_id, data
            event_id = data = None


def events_of(server, **query):
    """The events that there are after a place, and no more."""
    place, last = query["after"], server.client.get(STATUS).json()["last_event_id"]
    found = []
    if place == last:
        return found
    with following(server, **query) as events:
        for event_id, data in events:
            if data is not None:
                found.append(data)
            if event_id == last:
                return found
    return found


def test_a_status_is_joined_with_the_events_after_it_without_a_gap(parallel_server):
    status = parallel_server.client.get(STATUS, params={}).json()
    assert parallel_server.speak("joined").status_code == 200

    seen = events_of(parallel_server, after=status["last_event_id"])
    assert [it["type"] for it in seen if it["type"] in {"submit", "release"}] == ["submit", "release"]
    first = int(status["last_event_id"].split("-")[1]) + 1
    assert [it["seq"] for it in seen] == list(range(first, first + len(seen)))


def test_an_event_names_the_request_that_caused_it(parallel_server):
    before = parallel_server.client.get(STATUS).json()["last_event_id"]
    named = {"x-request-id": "named-by-me"}
    answer = parallel_server.client.post("/v1/audio/speech", json={"model": "tts", "input": "x"}, headers=named)
    assert answer.status_code == 200

    submitted = next(it for it in events_of(parallel_server, after=before) if it["type"] == "submit")
    assert (submitted["model"], submitted["operation"], submitted["request_id"]) == ("tts", "infer", "named-by-me")


def test_who_follows_hears_of_what_happens_meanwhile(parallel_server):
    with following(parallel_server) as events:
        assert next(events)[1] is None  # where it begins
        assert parallel_server.speak("meanwhile").status_code == 200
        assert next(data["type"] for _, data in events if data is not None) == "submit"


def test_the_last_event_id_of_a_reader_that_comes_back_goes_on(parallel_server):
    before = parallel_server.client.get(STATUS).json()["last_event_id"]
    assert parallel_server.speak("seen").status_code == 200
    with following(parallel_server, after=before, limit=1) as events:
        (_, _), (seen_id, seen) = events

    with following(parallel_server, [("last-event-id", seen_id)], after="0", limit=1) as events:
        (_, _), (_, next_one) = events
    assert next_one["seq"] == seen["seq"] + 1


def test_a_place_of_another_run_is_told_to_be_a_gap(parallel_server):
    with following(parallel_server, after="0123abcd-5", limit=1) as events:
        assert next(events) == (None, {"type": "gap", "reason": "restarted", "missed": None})


def test_the_events_of_one_model_are_those_of_no_other(parallel_server):
    before = parallel_server.client.get(STATUS).json()["last_event_id"]
    assert parallel_server.speak("left out").status_code == 200
    assert parallel_server.transcribe().status_code == 200

    with following(parallel_server, after=before, model="asr", limit=2) as events:
        assert {data["model"] for _, data in events if data is not None} == {"asr"}


@pytest.mark.parametrize(
    ("query", "param"),
    [({"after": "5"}, "after"), ({"after": "x-y"}, "after"), ({"limit": "0"}, "limit"), ({"limit": "many"}, "limit")],
)
def test_what_is_no_place_or_limit_is_refused(parallel_server, query, param):
    assert_refused(parallel_server.client.get(EVENTS, params=query), 400, param=param)


def test_head_ends_at_once(parallel_server):
    answer = parallel_server.client.head(EVENTS)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")


def test_it_needs_a_key_where_one_is_set(tmp_path):
    with controlled_server(tmp_path, parallel=True, api_keys=["secret"]) as server:
        assert_refused(server.client.get(EVENTS), 401)


def test_it_waits_for_no_model_and_ends_at_a_stop(tmp_path):
    with controlled_server(tmp_path, parallel=True) as server, server.steered("run.hold") as checkpoint:
        running = server.later("held")
        checkpoint.wait_for("run", text="held")
        with following(server, after="0") as events:
            assert any(data is not None and data["type"] == "submit" for _, data in events)
            server.process.process.send_signal(signal.SIGTERM)
            assert [data for _, data in events][-1] == {"type": "end", "reason": "shutting_down"}
        checkpoint.unset("run.hold")
        assert running.result(60).status_code == 200


def test_a_journal_that_cannot_be_written_is_one_line_at_the_start(tmp_path):
    with (
        pytest.raises(AssertionError, match="the journal cannot be written"),
        controlled_server(tmp_path, parallel=True, journal="tts"),
    ):
        pass


def test_one_without_a_folder_is_a_fault_of_the_configuration(tmp_path):
    with (
        pytest.raises(AssertionError, match=r"journal: wanted an existing folder"),
        controlled_server(tmp_path, parallel=True, journal="none/journal"),
    ):
        pass


def test_who_falls_behind_what_is_kept_is_told_and_let_go():
    clock = ManualClock()
    journal = Journal(clock, size=4)
    gate = JournaledGate("m", 1, journal)
    app, sent = FastAPI(), []
    add_events_route(app.router, journal, clock)

    async def send(message):
        sent.append(message)
        if message.get("body"):  # while the reader takes his time
            for _ in range(6):
                gate.expire(clock.now())

    async def receive():
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "path": "/v1/events", "headers": [], "query_string": b"after=0"}
    asyncio.run(app(scope, receive, send))

    last, end = sent[-2:]
    assert json.loads(last["body"].removeprefix(b"data: ")) == {"type": "dropped", "reason": "too_slow", "missed": 3}
    assert end["more_body"] is False
