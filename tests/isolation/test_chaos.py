"""Workers that are killed or hang, again and again, under load: right answers or clear refusals, and nothing is left.

`ANTIPHON_CHAOS` says how many times; few by default.
"""

import os
import random
import threading
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import psutil
import pytest

from conformance_client import eventually
from controlled_server import SLASHED, TASK_RUN, ControlledServer
from isolated_server import children_of, isolated_server, kill_worker, state_of, worker_of
from server_process import HANG_GUARD_S

ROUNDS = int(os.environ.get("ANTIPHON_CHAOS", "12"))
VICTIMS = ("tts", SLASHED, "third")
CLIENTS_EACH = 2
CLEAR = {(503, "worker_died"), (503, "server_busy"), (504, "run_timeout")}


@dataclass
class Load:
    """Clients that ask without a pause, and what they have seen."""

    server: ControlledServer
    stop: threading.Event = field(default_factory=threading.Event)
    answered: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    wrong: list[str] = field(default_factory=list)
    refused: int = 0

    def ask(self, client: httpx.Client, model: str, text: str) -> None:
        """Ask once, and judge what comes."""
        answer = client.post(TASK_RUN, json={"model": model, "request": {"text": text}})
        if answer.status_code == 200:
            self.answered[model] += 1
            if not answer.json()["text"].endswith(f"|{text}"):
                self.wrong.append(f"{text}: {answer.text}")
            return
        self.refused += 1
        if (answer.status_code, answer.json()["error"]["code"]) not in CLEAR:
            self.wrong.append(f"{text}: {answer.status_code} {answer.text}")

    def keep_asking(self, model: str, name: str) -> None:
        """Ask until told to stop."""
        with httpx.Client(base_url=self.server.process.url, timeout=HANG_GUARD_S) as client:
            number = 0
            while not self.stop.wait(0.01):  # where the next load backs off a refusal costs nothing
                number += 1
                self.ask(client, model, f"{name}-{number}")

    def wait_for_answer(self, model: str) -> None:
        """Wait until the model has answered once more."""
        before = self.answered[model]
        eventually(lambda: self.answered[model], lambda count: count > before, f"an answer of {model}")


def strike(load: Load, victim: str, number: int, *, kills: bool) -> None:
    """Kill a model's worker, or have it hang."""
    if kills:
        with suppress(ProcessLookupError):  # it has died already: a hang of its neighbour had it killed
            kill_worker(load.server.checkpoints[victim])
    else:
        with load.server.steered(f"run.hang.stuck{number}", model_id=victim):
            load.ask(load.server.client, victim, f"stuck{number}")


@pytest.fixture
def server(tmp_path):
    with isolated_server(tmp_path, run_timeout_ms=1000) as server:
        folder = server.checkpoints["tts"].path.with_name("third")
        server.checkpoints["third"] = type(server.checkpoints["tts"])(folder)
        third = {"id": "third", "family": "controlled", "path": str(folder), "task": "tts", "slots": 2}
        assert server.client.post("/v1/models/load", json=third).status_code == 200
        held = {"id": "asr", "family": "controlled", "path": str(server.checkpoints["asr"].path), "task": "tts"}
        assert server.client.post("/v1/models/load", json={**held, "run_timeout_ms": 0}).status_code == 200
        yield server


def test_chaos_leaves_right_answers_clear_refusals_and_nothing_else(server):
    chance, load, checkpoints = random.Random(7), Load(server), server.checkpoints
    with checkpoints["asr"].held("run", "untouched"):
        body = {"model": "asr", "request": {"text": "untouched"}, "run_timeout_ms": 0}
        untouched = server.threads.submit(lambda: server.client.post(TASK_RUN, json=body, timeout=None))
        checkpoints["asr"].wait_for("run", text="untouched")
        neighbour = worker_of(checkpoints["asr"])
        clients = [
            server.threads.submit(load.keep_asking, model, f"{at}{number}")
            for at, model in enumerate(VICTIMS)
            for number in range(CLIENTS_EACH)
        ]
        try:
            for number in range(ROUNDS):
                victim = chance.choice(VICTIMS)
                load.wait_for_answer(victim)
                strike(load, victim, number, kills=chance.random() < 0.7)
            for victim in VICTIMS:
                load.wait_for_answer(victim)
        finally:
            load.stop.set()
        for client in clients:
            client.result()
    assert untouched.result().json()["text"].endswith("|untouched")
    assert worker_of(checkpoints["asr"]) == neighbour
    assert load.wrong == []
    assert load.refused >= ROUNDS // 2

    assert [state_of(server, model)["leases"] for model in (*VICTIMS, "asr")] == [[]] * 4
    workers = [child for child in children_of(server) if child.pid != neighbour]
    assert all(child.status() != psutil.STATUS_ZOMBIE for child in workers)
    assert server.client.post("/v1/tasks/unload_all_models", json={}).status_code == 200
    assert not {worker_of(checkpoints[model]) for model in VICTIMS} & {child.pid for child in children_of(server)}
    assert list(server.process.temp.iterdir()) == []
