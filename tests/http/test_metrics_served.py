"""`GET /metrics` of real servers: what is counted adds up to what was sent, and what is shown is how things stand."""

import socket
import struct
from collections import Counter
from urllib.parse import urlsplit

import httpx
import pytest

from conformance_client import eventually
from controlled_server import SLASHED, SPEECH, TASK_RUN, TRANSCRIPTIONS, controlled_server
from isolated_server import isolated_server, kill_worker
from live_client import LIVE, live_client
from metrics_scrape import scraped
from server_process import HANG_GUARD_S, running_server
from websocket_clients import connect

TENTH = bytes(2 * 1600)
OWN = ("/metrics", "/v1/status")
"""What the tests look with, which is not counted among what they send."""


class Load:
    """Sends requests to one server and keeps count of what became of them."""

    def __init__(self, server):
        self.server = server
        self.requests = Counter()
        self.refusals = Counter()
        self.granted = Counter()
        self.ran = Counter()

    def expect(self, route, status, *, method="POST", refusal=None, granted=(), ran=()):
        """One request comes to this; `granted` and `ran` are the models of the slots and of the runs."""
        self.requests[route, method, str(status)] += 1
        self.refusals.update([refusal] if refusal else [])
        self.granted.update((it,) for it in granted)
        self.ran.update((it,) for it in ran)

    def successes(self):
        speaking = [self.server.later(f"success {n}") for n in range(5)]
        assert {it.result(HANG_GUARD_S).status_code for it in speaking} == {200}
        for _ in speaking:
            self.expect(SPEECH, 200, granted=["tts"], ran=["tts"])
        assert self.server.transcribe().status_code == 200
        self.expect(TRANSCRIPTIONS, 200, granted=["asr"], ran=["asr"])
        body = {"model": SLASHED, "request": {"text": "generic"}}
        assert self.server.client.post(TASK_RUN, json=body).status_code == 200
        self.expect(TASK_RUN, 200, granted=[SLASHED], ran=[SLASHED])

    def refused_before_a_slot(self):
        client = self.server.client
        asked = [
            (self.server.speak("x", model="nobody"), SPEECH, 404, ("model_not_found", "")),
            (client.post(SPEECH, content=b"{"), SPEECH, 400, ("invalid_request_error", "")),
            (client.post("/no/such/route"), "none", 404, ("not_found", "")),
            (client.put(SPEECH), SPEECH, 405, ("method_not_allowed", "")),
            (self.server.transcribe(b"no sound"), TRANSCRIPTIONS, 400, ("invalid_request_error", "")),
        ]
        for answer, route, status, refusal in asked:
            assert answer.status_code == status
            self.expect(route, status, method=answer.request.method, refusal=refusal)

    def faults(self):
        with self.server.steered("run.fail.faulty"):
            assert self.server.speak("faulty").status_code == 500
        self.expect(SPEECH, 500, refusal=("engine_error", "tts"), granted=["tts"], ran=["tts"])
        assert self.server.speak("unbound", voice="nobody's").status_code == 400
        self.expect(SPEECH, 400, refusal=("invalid_request_error", "tts"), granted=["tts"])
        with self.server.steered("run.cancellable"), self.server.steered("run.hold.endless"):
            assert self.server.speak("endless", run_timeout_ms=50).status_code == 504
            while self.gauge("leases"):  # a thread is let go of before its engine has ended
                pass
        self.expect(SPEECH, 504, refusal=("run_timeout", "tts"), granted=["tts"], ran=["tts"])

    def waits(self):
        """With every slot held: one is refused, one leaves the queue, one that is served leaves."""
        slots = 2 if self.server.parallel else 1
        with self.server.steered("run.hold") as checkpoint:
            held = [self.server.later(f"held {n}") for n in range(slots)]
            for n in range(slots):
                checkpoint.wait_for("run", text=f"held {n}")
                self.expect(SPEECH, 200, granted=["tts"], ran=["tts"])
            assert self.server.speak("too long", busy_timeout_ms=30).status_code == 503
            self.expect(SPEECH, 503, refusal=("server_busy", "tts"))
            self._leave_the_queue()
            self.expect(SPEECH, 499, refusal=("client_left", "tts"))
        assert {it.result(HANG_GUARD_S).status_code for it in held} == {200}

    def streams(self):
        for n in range(2):
            answer = self.server.speak(f"streamed {n}", stream_format="sse")
            assert answer.text.endswith("data: [DONE]\n\n")
            self.expect(SPEECH, 200, granted=["tts"], ran=["tts"])
        with self.server.steered("stream.fail.broken"):
            answer = self.server.speak("broken", stream_format="sse")
        status = answer.status_code
        assert '"engine_error"' in answer.text
        self.expect(SPEECH, status, refusal=("engine_error", "tts"), granted=["tts"], ran=["tts"] * (status == 200))
        body = {"model": "tts", "requests": [{"text": "one"}, {"text": "two"}]}
        assert self.server.client.post("/v1/tasks/batch", json=body).status_code == 200
        self.expect("/v1/tasks/batch", 200, granted=["tts"], ran=["tts"])

    def live(self):
        with live_client(self.server.process.url, model="asr") as client:
            client.say(TENTH)
            client.end()
            assert client.events()[-1] == {}
        self.expect(LIVE, 200, granted=["asr"], ran=["asr"])
        url = self.server.process.url.replace("http", "ws") + f"{LIVE}?model=asr"
        with connect(url) as talk:
            talk.send(TENTH)
            talk.send(b"")
            assert list(talk)[-1]
        self.expect(LIVE, 101, method="WEBSOCKET", granted=["asr"], ran=["asr"])

    def _leave_the_queue(self):
        place = urlsplit(self.server.process.url)
        body = b'{"model": "tts", "input": "leaves"}'
        head = f"POST {SPEECH} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((place.hostname, place.port), timeout=HANG_GUARD_S) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(head.encode() + body)
            eventually(lambda: self.gauge("waiting"), lambda it: it == 1, "one that waits")
        eventually(lambda: self.gauge("waiting"), lambda it: it == 0, "nobody that waits")

    def gauge(self, name):
        return scraped(self.server.client).value(f"antiphon_model_{name}", model="tts", kind="request")

    def assert_added_up(self):
        seen = scraped(self.server.client)
        assert seen.by("antiphon_http_requests_total", "route", "method", "status", without=OWN) == self.requests
        assert seen.by("antiphon_refusals_total", "reason", "model") == self.refusals
        assert seen.by("antiphon_request_queue_seconds_count", "model") == self.granted
        assert seen.by("antiphon_request_run_seconds_count", "model") == self.ran
        timed = {route: count for (route,), count in seen.by("antiphon_http_request_seconds_count", "route").items()}
        for route, count in timed.items():
            assert route in OWN or count == sum(n for (at, _, _), n in self.requests.items() if at == route)


@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "serial"])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_what_is_counted_adds_up_to_what_was_sent(tmp_path, isolation, parallel):
    with controlled_server(tmp_path, parallel=parallel, isolation=isolation) as server:
        load = Load(server)
        load.successes()
        load.refused_before_a_slot()
        load.faults()
        load.waits()
        load.streams()
        load.live()
        load.assert_added_up()
        loads = scraped(server.client).by("antiphon_model_loads_total", "model", "result")
        assert loads == {("tts", "loaded"): 1, ("asr", "loaded"): 1, (SLASHED, "loaded"): 1}


def test_a_load_that_fails_is_counted_and_has_no_duration(tmp_path):
    with controlled_server(tmp_path, parallel=True) as server:
        with server.steered("load.fail"):
            assert server.speak("too early").status_code == 500
        assert server.speak("in time").status_code == 200
        seen = scraped(server.client)
    assert seen.by("antiphon_model_loads_total", "model", "result") == {("tts", "failed"): 1, ("tts", "loaded"): 1}
    assert seen.by("antiphon_model_load_seconds_count", "model") == {("tts",): 1}
    assert seen.by("antiphon_refusals_total", "reason", "model") == {("load_failed", "tts"): 1}


def test_how_a_model_stands_is_read_at_one_moment(parallel_server):
    server = parallel_server
    assert server.speak("it is loaded").status_code == 200
    with server.steered("run.hold"):
        running = [server.later(f"standing {n}") for n in range(3)]
        eventually(lambda: server.model()["queued_requests"], lambda it: it == 1, "one that waits")
        seen = scraped(server.client)
    assert [it.result(HANG_GUARD_S).status_code for it in running] == [200] * 3
    assert seen.by("antiphon_model_state", "model", "state")["tts", "ready"] == 1
    assert seen.value("antiphon_model_slots", model="tts") == 2
    assert seen.value("antiphon_model_leases", model="tts", kind="request") == 2
    assert seen.value("antiphon_model_leases", model="tts", kind="management") == 0
    assert seen.value("antiphon_model_waiting", model="tts", kind="request") == 1
    assert ("tts", "controlled", "tts") in seen.by("antiphon_model_info", "model", "family", "task")


def test_a_model_that_is_not_loaded_has_no_memory_to_show(parallel_server):
    assert parallel_server.client.post("/v1/models/unload", json={"id": "tts"}).status_code == 200
    seen = scraped(parallel_server.client)
    assert ("tts",) not in seen.by("antiphon_model_resident_bytes", "model")
    assert seen.by("antiphon_model_state", "model", "state")["tts", "unloaded"] == 1


def test_a_model_that_makes_room_is_counted_as_evicted(tmp_path):
    with controlled_server(tmp_path, parallel=True, max_loaded_models=1) as server:
        assert server.speak("first").status_code == 200
        assert server.transcribe().status_code == 200
        evictions = scraped(server.client).by("antiphon_model_evictions_total", "model", "cause")
    assert evictions == {("tts", "room"): 1}


def test_a_worker_that_is_killed_is_counted_and_one_that_is_unloaded_is_not(tmp_path):
    with isolated_server(tmp_path) as server:
        assert server.speak("before").status_code == 200
        kill_worker(server.checkpoints["tts"])
        eventually(lambda: server.model()["loaded"], lambda it: not it, "the death of the worker")
        assert server.speak("after").status_code == 200
        assert server.client.post("/v1/models/unload", json={"id": "tts"}).status_code == 200
        seen = scraped(server.client)
    assert seen.by("antiphon_worker_deaths_total", "model") == {("tts",): 1}
    assert seen.value("antiphon_model_loads_total", model="tts", result="loaded") == 2


def test_what_a_client_makes_up_becomes_no_label(parallel_server):
    client = parallel_server.client
    client.request("BREW", "/v1/models")
    client.request("PROPFIND", "/made/up")
    client.get("/v1/models/made-up")
    parallel_server.speak("x", model="made-up")
    seen = scraped(client)
    values = {value for rows in seen.series.values() for labels in rows for _, value in labels}
    assert not {it for it in values if "made" in it or it in ("BREW", "PROPFIND")}


def test_metrics_need_a_key_where_one_is_set(tmp_path):
    with running_server(tmp_path, {"models": [], "api_keys": ["the-key"]}) as server:
        url, key = f"{server.url}/metrics", {"authorization": "Bearer the-key"}
        assert httpx.get(url, timeout=HANG_GUARD_S).status_code == 401
        assert httpx.get(url, headers=key, timeout=HANG_GUARD_S).status_code == 200


def test_a_scraper_that_accepts_open_metrics_gets_them(parallel_server):
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    answer = parallel_server.client.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
