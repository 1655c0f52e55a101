"""What many requests leave, and models that come and go, in a real server and all its processes (MEM-01, MEM-02)."""

import itertools
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import psutil
import pytest

import audio_assets
from conformance_client import eventually
from controlled_server import CLIP, SPEECH, TRANSCRIPTIONS
from isolated_server import children_of, doomed_server, isolated_server, state_of
from process_tree import allocated_bytes, descriptor_counts
from server_process import HANG_GUARD_S, started_alone

MIB = 1024 * 1024
BAD = list(audio_assets.bad_audio().values())
LONG_CLIP = audio_assets.wav_bytes(audio_assets.tone(440, 60))
"""A minute of sound: above what a form keeps in memory."""

ROUNDS = 4
WARM_ROUNDS = 4
REQUESTS = 25
"""Requests of each of six kinds in a round: 300 for speech and 300 for transcriptions in all."""
STRETCHES = 4
"""A leak shows in each of so many stretches; another codec worker that finds its first work shows in one."""
LEAK_BYTES = 4 * MIB
"""What may be new after the rounds of a stretch: 7 kB a request. Nothing was, when this was written."""


def in_bytes(request, cut):
    """A request as it goes over the line, without its last `cut` bytes."""
    lines = [f"{request.method} {request.url.path} HTTP/1.1".encode()]
    lines += [name + b": " + value for name, value in request.headers.raw]
    whole = b"\r\n".join([*lines, b"", request.read()])
    return whole[: len(whole) - cut]


def speech(text, cut=0):
    return in_bytes(httpx.Request("POST", f"http://a{SPEECH}", json={"model": "tts", "input": text}), cut)


def upload(file, cut=0):
    files = {"file": ("a.wav", file)}
    return in_bytes(httpx.Request("POST", f"http://a{TRANSCRIPTIONS}", data={"model": "asr"}, files=files), cut)


def cut_off(server, sent):
    """Send this much of a request, and be gone."""
    url = httpx.URL(server.process.url)
    with socket.create_connection((url.host, url.port), HANG_GUARD_S) as connection:
        connection.sendall(sent)


def one_of_each(server, number):
    """A request that is in order, one that is bad and one that is cut off, for speech and for a transcription."""
    assert server.speak(f"hello {number}").status_code == 200
    assert server.transcribe(LONG_CLIP if number % 5 == 0 else CLIP).status_code == 200
    assert server.speak(" ").status_code == 400
    assert server.transcribe(BAD[number % len(BAD)]).status_code == 400
    cut_off(server, speech("bye", cut=number % 2))
    cut_off(server, upload(LONG_CLIP, cut=number % 2 * MIB))


def one_round(server, number):
    """Requests of every kind, four at a time, until nothing of them is under way."""
    with httpx.Client(base_url=server.process.url, timeout=HANG_GUARD_S) as client, ThreadPoolExecutor(4) as clients:
        through = replace(server, client=client)
        list(clients.map(lambda at: one_of_each(through, number * REQUESTS + at), range(REQUESTS)))
        eventually(
            lambda: [state_of(through, name) for name in ("tts", "asr")],
            lambda models: not any(it["leases"] or it["queue"] for it in models),
            "free slots",
        )
    process = psutil.Process(server.process.process.pid)
    eventually(lambda: {it.status for it in process.net_connections("inet")}, {psutil.CONN_LISTEN}.__ge__, "no client")


def growth_of(server, rounds):
    """How many bytes the server and its workers take more after a stretch of rounds."""
    before = allocated_bytes(server.process)
    for _ in range(ROUNDS):
        next(rounds)
    return allocated_bytes(server.process) - before


def test_requests_of_every_kind_leave_no_memory_no_descriptor_and_no_file(tmp_path):
    with isolated_server(tmp_path, lazy_load=False, start=started_alone) as server:
        rounds = (one_round(server, number) for number in itertools.count())
        for _ in range(WARM_ROUNDS):  # until there are as many codec workers as four clients ever need
            next(rounds)
        open_before = descriptor_counts(server.process)
        assert any(growth_of(server, rounds) < LEAK_BYTES for _ in range(STRETCHES))
        assert descriptor_counts(server.process) == open_before
        assert list(server.process.temp.iterdir()) == []


def test_a_server_that_is_killed_in_the_midst_leaves_no_file_and_its_successor_serves(tmp_path):
    with doomed_server(tmp_path) as server, server.checkpoints["tts"].held("run"):
        held = server.later("held")
        server.checkpoints["tts"].wait_for("run")
        url = httpx.URL(server.process.url)
        with socket.create_connection((url.host, url.port), HANG_GUARD_S) as connection:
            connection.sendall(upload(LONG_CLIP, cut=MIB // 2))
            assert server.transcribe(LONG_CLIP).status_code == 200
            children = children_of(server)
            server.process.process.kill()
        assert isinstance(held.exception(), httpx.TransportError)
        assert psutil.wait_procs(children, HANG_GUARD_S)[1] == []
        assert list(server.process.temp.iterdir()) == []
    with isolated_server(tmp_path) as server:
        assert server.speak("hello").status_code == 200
        assert server.transcribe(LONG_CLIP).status_code == 200
        assert list(server.process.temp.iterdir()) == []


def come_and_go(server, use, rounds=20):
    """Have a model loaded by `use` and unloaded again and again; the sizes at the start, when loaded and at the end."""
    assert server.transcribe(b"no audio").status_code == 400  # now the codec worker has its libraries
    start = allocated_bytes(server.process)
    largest = start
    for _ in range(rounds):
        model = use()
        largest = max(largest, allocated_bytes(server.process))
        assert server.client.post("/v1/models/unload", json={"id": model}).json()["loaded"] is False
    return start, largest, allocated_bytes(server.process)


def assert_all_came_back(start, largest, end):
    assert end - start < 0.05 * (largest - start) + 8 * MIB


def test_the_memory_of_a_model_comes_back_also_after_a_fault_of_its_engine(tmp_path):
    with (
        isolated_server(tmp_path, start=started_alone) as server,
        server.steered("run.fail.boom", "MemoryError"),
    ):
        server.checkpoints["tts"].set("bytes", str(64 * MIB))

        def use():
            assert server.speak("hello").status_code == 200
            assert server.speak("boom").status_code == 503
            return "tts"

        start, largest, end = come_and_go(server, use)
    assert largest - start > 64 * MIB
    assert_all_came_back(start, largest, end)


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("model", ["piper", "whisper"])
def test_the_memory_of_a_real_engine_comes_back(engines, model):
    def use():
        answer = engines.speak("Hello.") if model == "piper" else engines.transcribe(CLIP)
        assert answer.status_code == 200, answer.text
        return model

    assert_all_came_back(*come_and_go(engines, use))
