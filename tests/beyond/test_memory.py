"""Memory that is told: estimates before a load, what a model takes, what an unload brings back; against the process."""

import psutil
import pytest

from conformance_server import LOAD, UNLOAD

WEIGHT_BYTES = 96 * 2**20
NOISE_BYTES = 8 * 2**20
"""What a server allocates for itself beside a model of that size."""


@pytest.fixture
def quiet(lent_server):
    """A server without the models of other tests."""
    return lent_server(max_text_chars=40_000)


@pytest.fixture
def heavy(quiet):
    """A model with weights that are really allocated, not yet registered."""
    model = quiet.unregistered_model()
    model.checkpoint.set("bytes", str(WEIGHT_BYTES))
    return model


def pss_bytes(server):
    """What the kernel says of the server's process."""
    return psutil.Process(server.process.process.pid).memory_full_info().pss


def about(size_bytes):
    return pytest.approx(size_bytes, abs=NOISE_BYTES)


def test_a_dry_run_tells_what_the_process_then_grows_by(quiet, heavy):
    quiet.new_model()  # what a first load brings is there
    dry = heavy.register(dry_run=True).ok()
    before = pss_bytes(quiet)
    heavy.register().ok()
    grown = pss_bytes(quiet) - before
    assert grown == about(WEIGHT_BYTES)
    assert dry["memory"]["needed_bytes"] == about(grown)


def test_the_status_tells_what_a_model_takes_and_its_unload_what_came_back(quiet, heavy):
    before = pss_bytes(quiet)
    heavy.register().ok()
    assert heavy.status()["resident_bytes"] == about(pss_bytes(quiet) - before)
    assert heavy.status()["resident_bytes"] == about(WEIGHT_BYTES)

    memory = heavy.unload().ok()["memory"]

    assert heavy.status()["resident_bytes"] is None
    assert memory["before_bytes"] - memory["after_bytes"] == memory["returned_bytes"] == about(WEIGHT_BYTES)
    assert memory["after_bytes"] == about(pss_bytes(quiet))


def test_what_grew_beside_other_work_is_nobodys(quiet, heavy):
    other = quiet.new_model()
    with other.checkpoint.held("run"):
        other.infer("running")
        other.checkpoint.wait_for("run")
        heavy.register().ok()
        assert heavy.status()["resident_bytes"] is None
        memory = heavy.unload().ok()["memory"]
    assert memory["returned_bytes"] is None
    assert memory["before_bytes"] - memory["after_bytes"] == about(WEIGHT_BYTES)


def test_an_unload_of_what_is_not_loaded_tells_of_no_memory(quiet, heavy):
    heavy.register().ok()
    heavy.unload().ok()
    assert quiet.client.start("POST", UNLOAD, json={"id": heavy.id}).ok()["memory"] is None
    quiet.client.start("POST", LOAD, json={"id": heavy.id}).ok()
    assert quiet.client.start("POST", UNLOAD, json={"id": heavy.id}).ok()["memory"]["returned_bytes"]
