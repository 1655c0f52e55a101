"""What a real server wrote down happens again in the core; what was not so is found."""

import json
import socket
import struct
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from antiphon.observability.journal.reading import replay_file
from antiphon.vocabulary.errors import ConfigError
from conformance_client import eventually
from controlled_server import SLASHED, SPEECH, controlled_server
from isolated_server import kill_worker
from server_process import HANG_GUARD_S

LOAD, UNLOAD, UNLOAD_ALL = "/v1/models/load", "/v1/models/unload", "/v1/tasks/unload_all_models"


def overlap(server):
    """More requests than slots: one is refused, one leaves the queue, the rest is served, one fails."""
    slots = 2 if server.parallel else 1
    with server.steered("run.hold") as checkpoint:
        held = [server.later(f"held {n}") for n in range(slots)]
        for n in range(slots):
            checkpoint.wait_for("run", text=f"held {n}")
        assert server.speak("too long", busy_timeout_ms=30).status_code == 503
        leave_the_queue(server)
        waiting = server.later("waits")
        wait_for_waiting(server, 1)
    assert {it.result(HANG_GUARD_S).status_code for it in [*held, waiting]} == {200}
    with server.steered("run.fail.faulty"):
        assert server.speak("faulty").status_code == 500


def leave_the_queue(server):
    place = urlsplit(server.process.url)
    body = b'{"model": "tts", "input": "leaves"}'
    head = (
        f"POST {SPEECH} HTTP/1.1\r\nHost: {place.netloc}\r\nX-Request-Id: leaver\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((place.hostname, place.port), timeout=HANG_GUARD_S) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(head.encode() + body)
        wait_for_waiting(server, 1)
    wait_for_waiting(server, 0)


def wait_for_waiting(server, count):
    eventually(lambda: server.client.get("/v1/status").json()["models"][0]["waiting"], count.__eq__, f"{count} waiting")


def manage(server):
    """Evictions, a load that fails, a reconfiguration, unloads."""
    post = server.client.post
    assert server.transcribe().status_code == 200
    assert server.speak("evicts", model=SLASHED).status_code == 200
    assert post(UNLOAD, json={"id": "tts"}).status_code == 200
    with server.steered("load.fail"):
        assert server.speak("no such luck").status_code == 500
    path = str(server.checkpoints["tts"].path)
    slots = {"slots": 1} if server.parallel else {}
    again = {"id": "tts", "family": "controlled", "path": path, "task": "tts", "session_options": {"x": 1}, **slots}
    assert post(LOAD, json=again).status_code == 200
    assert post(LOAD, json={**again, "session_options": {"x": 2}}).status_code == 200
    assert post(UNLOAD_ALL, json={}).status_code == 200
    assert server.speak("once more").status_code == 200


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """The journal of a busy server of two slots a model, whose worker died once."""
    folder = tmp_path_factory.mktemp("journal")
    settings = {"isolation": "process", "ui_management": True, "max_loaded_models": 2, "journal": "journal.jsonl"}
    with controlled_server(folder, parallel=True, **settings) as server:
        overlap(server)
        manage(server)
        with server.steered("run.hold.dying") as checkpoint:
            dying = server.later("dying")
            checkpoint.wait_for("run", text="dying")
            kill_worker(checkpoint)
            assert dying.result(HANG_GUARD_S).status_code == 503
        assert server.speak("back again").status_code == 200
    return folder / "journal.jsonl"


def test_what_a_real_server_did_happens_again(journal):
    verdict = replay_file(journal)

    assert (verdict.fault, verdict.cut) == (None, False)
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert verdict.entries == len(lines) - 1
    assert verdict.models == 3
    assert {line["type"] for line in lines} >= {
        *("journal", "open", "submit", "release", "try_exclusive", "resize", "withdraw"),
        *("transition", "registered", "loaded", "load_failed", "evicted", "died", "failed"),
    }


def test_the_serial_runtime_does_as_well(tmp_path):
    settings = {"ui_management": True, "max_loaded_models": 2, "journal": "journal.jsonl", "idle_unload_ms": 1}
    with controlled_server(tmp_path, parallel=False, **settings) as server:
        overlap(server)
        manage(server)

    assert replay_file(tmp_path / "journal.jsonl").fault is None


def test_an_entry_says_who_caused_it(journal):
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]

    left = next(line for line in lines if line["type"] == "withdraw")
    assert (left["model"], left["request_id"]) == ("tts", "leaver")
    evicted = next(line for line in lines if line["type"] == "evicted")
    evictor = next(line for line in lines if line["type"] == "submit" and line["model"] == SLASHED)
    assert (evicted["cause"], evicted["newcomer"], evicted["request_id"]) == ("room", SLASHED, evictor["request_id"])
    retired = next(line for line in lines if line["type"] == "transition" and line["after"] == "unloading")
    assert (retired["operation"], retired["request_id"]) == ("evict", evictor["request_id"])
    again = next(line for line in lines if line["type"] == "transition" and line["after"] == "reconfiguring")
    assert again["operation"] == "load"


def tampered_slot(lines):
    place = next(at for at, line in enumerate(lines) if line.get("decided") and "slot" in line["decided"][0])
    lines[place]["decided"][0]["slot"] = 7


def tampered_refusal(lines):
    place = next(at for at, line in enumerate(lines) if any(it["type"] == "refused" for it in line.get("decided", ())))
    lines[place]["decided"] = []


def tampered_order(lines):
    granted = [line for line in lines if line["type"] == "release" and line.get("decided")]
    granted[0]["decided"][0]["waiter"] += 1


def tampered_transition(lines):
    next(line for line in lines if line["type"] == "transition")["after"] = "ready"


def tampered_limit(lines):
    lines[0]["max_loaded_models"] = 1


def tampered_gap(lines):
    del lines[10]


def tampered_time(lines):
    lines[-1]["now"] = 1.0


def tampered_wait(lines):
    next(line for line in lines if line["type"] == "withdraw")["waiter"] += 100


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (tampered_slot, "the core decides granted"),
        (tampered_refusal, "decided was nothing"),
        (tampered_order, "decided was granted"),
        (tampered_transition, "leads from unloaded to ready"),
        (tampered_limit, "2 models are resident, and 1 may be"),
        (tampered_gap, "is missing"),
        (tampered_time, "time runs backwards"),
        (tampered_wait, "does not wait"),
    ],
)
def test_what_was_not_so_is_found(journal, tmp_path, tamper, told):
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    tamper(lines)
    other = tmp_path / "tampered.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))

    verdict = replay_file(other)
    assert told in verdict.fault
    assert sum(line.startswith("-> ") for line in verdict.surroundings) == 1


def test_the_command_tells_a_difference_by_its_exit_code(journal, tmp_path):
    same = CliRunner().invoke(app, ["replay", str(journal)])
    assert same.exit_code == 0
    assert "all was decided as it was" in same.output
    lines = journal.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"".join(lines[:20] + lines[21:]))

    different = CliRunner().invoke(app, ["replay", str(other)])
    assert different.exit_code == 1
    assert "-> 21: " in different.output


def test_a_last_line_that_is_cut_is_told(journal, tmp_path):
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(journal.read_bytes()[:-20])

    told = CliRunner().invoke(app, ["replay", str(cut)])
    assert told.exit_code == 0
    assert "the last line is cut" in told.output


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b'{"type":"expire","seq":1,"time":1,"now":1,"model":"m"}\n', b"\xff\n"]
)
def test_what_is_no_journal_is_refused(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match="is no journal"):
        replay_file(file)


def test_a_journal_of_another_version_is_refused(journal, tmp_path):
    head = json.loads(journal.read_bytes().splitlines()[0])
    file = tmp_path / "newer.jsonl"
    file.write_text(json.dumps({**head, "version": 2}) + "\n")

    with pytest.raises(ConfigError, match="version 2"):
        replay_file(file)
