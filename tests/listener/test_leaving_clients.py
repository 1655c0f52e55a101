"""Clients that leave: what had not begun never runs, slots come free, and nothing of them stays.

Each test names in a comment a mutant that it kills.
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from audio_assets import tone, wav_bytes
from conformance_client import eventually
from conformance_evidence import answers
from conformance_situations import fill
from listener_peers import TASK_RUN, connect, head, json_request, leave, port_of
from listener_stop import wait_disconnected

LEAVERS = 16
NOTICED_MS = 250
"""After this a server has seen that a client has left. Units: milliseconds of a waiter's age, which it tells itself."""

CLIENTS, WARM_UP, AT_ONCE = 1000, 300, 16
SEED = 20261004
SHORTEST_ANSWER_BYTES = 200
"""Every answer is longer, so nobody waits for bytes that never come."""
FLAT_BYTES = 4 * 1024 * 1024
"""How much larger a server may be after `CLIENTS` clients: 4 KiB for each, less than the objects of a request take."""


@pytest.mark.parametrize("reset", [False, True])
def test_sixteen_clients_that_hang_up_in_the_queue_never_run(server, reset):
    # Mutant: `while_connected` awaits its work and watches nobody.
    model = server.new_model()
    with model.checkpoint.held("run"):
        running, texts = fill(model, server.slots)
        leavers = [model.open_infer(f"left {number}") for number in range(LEAVERS)]
        model.wait_listed(queued_requests=LEAVERS)
        behind = model.infer("behind")
        model.wait_listed(queued_requests=LEAVERS + 1)

        for leaver in leavers:
            leaver.cut(reset=reset)

        model.wait_queue("infer")  # all at once, while nothing has moved
    assert [it.text for it in answers([*running, behind])] == [*texts, "behind"]
    assert sorted(model.runs()) == sorted([*texts, "behind"])
    _is_idle(model)


@pytest.mark.parametrize("reset", [False, True])
def test_sixteen_clients_that_send_and_hang_up_at_once_never_run(server, reset):
    # Mutant: `until_disconnect` returns only for a client that left after it was called.
    model = server.new_model()
    with model.checkpoint.held("run"):
        running, texts = fill(model, server.slots)
        ports = []
        for number in range(LEAVERS):
            peer = connect(server.process.url)
            ports.append(port_of(peer))
            order = {"model": model.id, "request": {"text": f"left {number}"}}
            peer.sendall(json_request(server.process.url, TASK_RUN, order))
            leave(peer, reset=reset)
        wait_disconnected(server.process, *ports)
        behind = model.infer("behind")

        model.wait_queue("infer")
        eventually(lambda: model.status()["queue"][0]["age_ms"], lambda it: it > NOTICED_MS, "a wait that is noticed")
        model.wait_queue("infer")
    assert [it.text for it in answers([*running, behind])] == [*texts, "behind"]
    assert sorted(model.runs()) == sorted([*texts, "behind"])
    _is_idle(model)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("heeds", [False, True])
def test_the_next_request_starts_when_the_run_of_a_client_that_left_ends(server, reset, heeds):
    # Mutants: the lease is released when the client leaves; `cancelled` is never set.
    model = server.new_model()
    if heeds:
        model.checkpoint.set("run.cancellable")
    texts = [f"left running {number}" for number in range(server.slots)]
    for text in texts:
        model.checkpoint.hold("run", text)
    running = [model.open_infer(text) for text in texts]
    for text in texts:
        model.checkpoint.wait_for("run", text=text)
    queued = [model.open_infer(f"left queued {number}") for number in range(LEAVERS)]
    model.wait_listed(queued_requests=LEAVERS)
    behind = model.infer("behind")
    model.wait_listed(queued_requests=LEAVERS + 1)

    for leaver in [*queued, *running]:
        leaver.cut(reset=reset)

    if not heeds:  # the engine works on and keeps its slots, until we let it end
        model.wait_queue("infer")
        assert model.status()["active_slots"] == server.slots
        model.checkpoint.release("run", texts[-1])
    assert [it.text for it in answers([behind])] == ["behind"]
    steps = [(event.step, event.request) for event in model.checkpoint.events() if event.step in ("run", "ran")]
    before = steps[: steps.index(("run", "behind"))]
    assert {text for step, text in before if step == "run"} == set(texts)
    assert any(step == "ran" for step, _ in before)
    assert sorted(model.runs()) == sorted([*texts, "behind"])
    for text in texts:
        if not heeds and text != texts[-1]:
            model.checkpoint.release("run", text)
    _is_idle(model)


def test_a_thousand_clients_that_leave_at_random_moments_leave_nothing(server):
    # Mutants: a finished request stays in a list; a connection's task is never ended; a spooled upload stays open.
    models = {task: server.new_model(task=task) for task in ("tts", "asr")}
    for model in models.values():
        model.checkpoint.set("run.ms", "2")
    url = server.process.url
    process = psutil.Process(server.process.process.pid)
    ours = len(_connections(process))
    _let_come_and_go(url, models, random.Random(SEED), WARM_UP)
    _all_idle(models, process, ours)
    descriptors, size = _own_descriptors(process), _own_bytes(process)

    _let_come_and_go(url, models, random.Random(SEED + 1), CLIENTS)

    _all_idle(models, process, ours)
    assert (_own_descriptors(process), list(server.process.temp.iterdir())) == (descriptors, [])
    assert _own_bytes(process) - size < FLAT_BYTES
    for model in models.values():
        assert model.listed()["active_slots"] == model.listed()["queued_requests"] == 0
    assert answers([models["tts"].infer("after them")])[0].text == "after them"
    assert "Traceback" not in server.process.log.read_text()


def _let_come_and_go(url, models, chance, count):
    """Let clients come, `AT_ONCE` side by side, and each leave at a moment that `chance` has chosen beforehand."""
    plans = [(chance.randrange(5), chance.random(), chance.random() < 0.5) for _ in range(count)]

    def visit(plan):
        kind, moment, reset = plan
        _leave_at(connect(url), _order_of(url, models, kind), moment, reset=reset)

    with ThreadPoolExecutor(AT_ONCE) as clients:
        for done in [clients.submit(visit, plan) for plan in plans]:
            done.result()


def _order_of(url, models, kind):
    """A whole request of one of five kinds."""
    tts, asr = models["tts"].id, models["asr"].id
    match kind:
        case 0:
            return json_request(url, TASK_RUN, {"model": tts, "request": {"text": "run"}})
        case 1:
            return json_request(url, "/v1/tasks/stream", {"model": tts, "request": {"text": "stream"}})
        case 2:
            return json_request(url, "/v1/tasks/batch", {"model": tts, "requests": [{"text": "batch"}] * 3})
        case 3:
            return json_request(url, "/v1/audio/speech", {"model": tts, "input": "speech", "response_format": "wav"})
        case _:
            return _upload(url, asr)


def _upload(url, model_id):
    fields = f'--edge\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model_id}\r\n'
    file = '--edge\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    body = fields.encode() + file.encode() + wav_bytes(tone(440, 0.5)) + b"\r\n--edge--\r\n"
    form = "multipart/form-data; boundary=edge"
    return head(url, "POST", "/v1/audio/transcriptions", Content_Type=form, Content_Length=len(body)) + body


def _leave_at(peer, order, moment, *, reset):
    """Leave in the first half of [0, 1) after a part of the request, then after all of it or a part of the answer."""
    peer.sendall(order[: round(len(order) * min(1.0, 2 * moment))])
    wanted = round(SHORTEST_ANSWER_BYTES * max(0.0, moment - 0.7) / 0.3)
    while wanted > 0 and (piece := peer.recv(wanted)):
        wanted -= len(piece)
    leave(peer, reset=reset)


def _all_idle(models, process, ours):
    for model in models.values():
        _is_idle(model)
    eventually(lambda: len(_connections(process)), lambda it: it <= ours, "connections that are gone")


def _own_bytes(process):
    """Memory that the process has written to. Its share of libraries (PSS) changes as other servers come and go."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def _own_descriptors(process):
    """How many files the process has open, but for connections: our own lie idle, and may be closed at any time."""
    return process.num_fds() - len(_connections(process))


def _connections(process):
    return [it for it in process.net_connections("tcp") if it.raddr]


def _is_idle(model):
    eventually(model.status, lambda it: (it["leases"], it["queue"], it["state"]) == ([], [], "ready"), "an idle model")
