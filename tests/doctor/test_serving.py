"""What the doctor says of configurations, models, listeners and the address: as a start would meet them."""

import json
import socket

import pytest

from antiphon.config import build_config
from antiphon.doctor.diagnosis import Health
from antiphon.doctor.serving import address, configured, journal, listeners, model
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.inspection import Inspector
from antiphon.service.voice_library import NO_LIBRARY
from server_process import running_server
from tls_files import TlsFiles

OK, WARN, FAIL = Health


def config(folder, *, parallel_jobs=True, **fields):
    return build_config(fields, source="this test", base=folder, parallel_jobs=parallel_jobs)


def one_model(folder, *, device="cpu", parallel_jobs=True, **fields):
    """What is said of a controlled model, and the memory that it needs."""
    (folder / "checkpoint").mkdir(exist_ok=True)
    described = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", **fields}
    made = config(folder, models=[described], device=device, parallel_jobs=parallel_jobs)
    with Inspector(AdapterFinder().target) as inspector:
        return model(made.registrations()[0], inspector, NO_LIBRARY, parallel_jobs=parallel_jobs)


def test_a_file_that_can_be_served_is_in_order(tmp_path):
    (tmp_path / "server.json").write_text(json.dumps({"port": 9}))

    told, made = configured(tmp_path / "server.json", None, ["key"], parallel_jobs=False)
    assert (told.health, told.said) == (OK, f"{tmp_path}/server.json; models: 0")
    assert (made.port, made.api_keys) == (9, ("key",))


def test_a_file_with_a_fault_is_a_fault_with_the_line_that_a_start_leaves_with(tmp_path):
    (tmp_path / "server.json").write_text(json.dumps({"prot": 9}))

    told, made = configured(tmp_path / "server.json", None, None, parallel_jobs=False)
    assert (told.health, made) == (FAIL, None)
    assert "prot" in told.said


def test_nothing_to_serve_is_a_fault(tmp_path):
    told, made = configured(None, tmp_path, None, parallel_jobs=False)

    assert (told.health, made) == (FAIL, None)
    assert "antiphon models install" in told.said


def test_slots_within_the_audit_list_are_told_of_beside_it(tmp_path):
    found, _ = one_model(tmp_path, slots=3, threads=2)

    assert found.health is OK
    assert "3 of 16 audited slots, 2 threads a call, in a process of its own" in found.said


def test_slots_beyond_the_audit_list_are_a_fault(tmp_path):
    found, _ = one_model(tmp_path, slots=2, device="cuda")

    assert found.health is FAIL
    assert "slots is 2, and controlled on cuda may use 1" in found.said


def test_presets_that_the_model_cannot_follow_are_a_fault(tmp_path):
    found, _ = one_model(tmp_path, default_request_options={"odd": 1})

    assert found.health is FAIL
    assert "default_request_options" in found.said


def test_auto_for_an_engine_that_cannot_choose_is_a_fault(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "fixed_threads").touch()
    found, _ = one_model(tmp_path, threads="auto")

    assert found.health is FAIL
    assert "threads is auto" in found.said


def test_threads_that_are_chosen_for_each_call_are_told_of(tmp_path):
    assert ", threads auto, " in one_model(tmp_path, threads="auto")[0].said


def test_without_parallel_jobs_there_is_one_session(tmp_path):
    found, _ = one_model(tmp_path, parallel_jobs=False, isolation="thread")

    assert "one session, " in found.said
    assert found.said.endswith("in a thread of its own")


def test_a_family_that_is_not_there_is_a_fault(tmp_path):
    found, _ = one_model(tmp_path, family="nobody")

    assert found.health is FAIL
    assert "'nobody'" in found.said


def test_files_that_the_family_cannot_load_are_a_fault(tmp_path):
    found, _ = one_model(tmp_path, family="piper")

    assert found.health is FAIL
    assert found.advice == "mend the model's fields, or its files"


@pytest.mark.parametrize(("lazy", "needed_bytes"), [(False, 4096), (True, 0)])
def test_the_memory_of_a_model_counts_if_it_is_loaded_at_the_start(tmp_path, lazy, needed_bytes):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "bytes").write_text("4096")

    assert one_model(tmp_path, lazy=lazy)[1] == needed_bytes


def test_the_keys_of_the_environment_are_judged_as_at_a_start(tmp_path):
    (tmp_path / "server.json").write_text("{}")

    told, made = configured(tmp_path / "server.json", None, ["key"], ["no key"], parallel_jobs=False)
    assert (told.health, made) == (FAIL, None)
    assert told.said.startswith("ANTIPHON_ADMIN_KEYS: ")
    _, made = configured(tmp_path / "server.json", None, ["key"], ["admin"], parallel_jobs=False)
    assert (made.api_keys, made.admin_keys) == (("key",), ("admin",))


def test_a_journal_that_can_be_begun_is_in_order_and_is_not(tmp_path):
    (found,) = journal(config(tmp_path, journal="journal.jsonl"))

    assert (found.health, found.said) == (OK, f"{tmp_path}/journal.jsonl can be written")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_cannot_be_begun_is_a_fault(tmp_path):
    (tmp_path / "journal.jsonl").mkdir()
    (found,) = journal(config(tmp_path, journal="journal.jsonl"))

    assert found.health is FAIL
    assert found.said == f"the journal cannot be written to {tmp_path}/journal.jsonl: it is no plain file"


def test_a_listener_is_made_and_not_opened(tmp_path):
    (found,) = listeners(config(tmp_path, listeners=[{"kind": "unix", "path": "a.sock"}]))

    assert (found.subject, found.health) == ("listener unix", OK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("listener", [{"kind": "unix"}, {"kind": "carrier-pigeon"}])
def test_a_listener_that_cannot_be_made_is_a_fault(tmp_path, listener):
    (found,) = listeners(config(tmp_path, listeners=[listener]))

    assert found.health is FAIL


def test_a_free_port_is_in_order_and_free_afterwards(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = address(config(tmp_path, port=port))

    assert (found.health, found.said) == (OK, f"127.0.0.1 port {port} is free; this machine alone reaches it")
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_port_that_somebody_else_has_is_a_fault(tmp_path):
    with socket.socket() as taken:  # bound, and silent: nobody is there to be asked
        taken.bind(("127.0.0.1", 0))
        found = address(config(tmp_path, port=taken.getsockname()[1]))

    assert found.health is FAIL
    assert "cannot listen on 127.0.0.1" in found.said


def test_a_port_where_the_server_itself_runs_is_in_order(tmp_path):
    with running_server(tmp_path, {"api_keys": ["secret"]}) as server:
        found = address(config(tmp_path, port=int(server.url.rpartition(":")[2])))

    assert found.health is OK
    assert found.said.endswith("a server answers there already")


@pytest.mark.parametrize(("fields", "health"), [({}, FAIL), ({"api_keys": ["secret"]}, OK), ({"insecure": True}, WARN)])
def test_an_address_that_others_reach_wants_a_key(tmp_path, fields, health):
    assert address(config(tmp_path, host="0.0.0.0", port=0, **fields)).health is health


def test_a_certificate_that_does_not_fit_its_key_is_a_fault(tmp_path):
    files = TlsFiles(tmp_path)
    (cert, _), (_, key) = files.certificate("one"), files.certificate("two")

    found = address(config(tmp_path, port=0, tls_cert=str(cert), tls_key=str(key)))
    assert found.health is FAIL
    assert "tls_key" in found.said
