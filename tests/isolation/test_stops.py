"""Stops that end in time although an engine never would: over real HTTP, with real signals and processes."""

import signal

import httpx
import pytest

from isolated_server import isolated_server
from listener_stop import assert_ended, begin_stop
from refusals import assert_refused


def assert_refused_or_cut(call):
    """Whoever waited is told that the server ends, or sees its connection closed; it gets no answer."""
    if isinstance(fault := call.exception(), Exception):
        assert isinstance(fault, httpx.RemoteProtocolError | httpx.ReadError)
    else:
        assert_refused(call.result(), 503, code="shutting_down")


@pytest.fixture
def server(tmp_path):
    with isolated_server(tmp_path, drain_timeout_ms=100) as server:
        yield server


# Mutant of all: `ModelRuntime.cut` sets no timer.


@pytest.mark.parametrize("behaviour", ["hang", "gil"])
def test_a_run_that_would_never_end_is_killed_after_the_deadline(server, behaviour):
    tts = server.checkpoints["tts"]
    with server.steered(f"run.{behaviour}.stuck", "600000"):
        stuck = server.later("stuck")
        tts.wait_for("run", text="stuck")
        begin_stop(server.process)
        assert_ended(server.process)
    assert_refused_or_cut(stuck)
    assert tts.events("ran") == []


def test_a_load_that_would_never_end_is_killed_after_the_deadline(server):
    tts = server.checkpoints["tts"]
    with server.steered("load.hang"):
        waiting = server.later("waiting")
        tts.wait_for("load")
        begin_stop(server.process)
        assert_ended(server.process)
    assert_refused_or_cut(waiting)
    assert tts.events("loaded") == []


def test_a_teardown_that_would_never_end_is_killed_after_the_deadline(server):
    tts = server.checkpoints["tts"]
    assert server.speak("before").status_code == 200
    with server.steered("destroy.hang"):
        begin_stop(server.process)
        assert_ended(server.process)
    assert tts.events("closed") == []


def test_a_second_signal_ends_a_run_that_would_never_end(tmp_path):
    with isolated_server(tmp_path, drain_timeout_ms=0) as server:
        tts = server.checkpoints["tts"]
        with server.steered("run.hang.stuck"):
            stuck = server.later("stuck")
            tts.wait_for("run", text="stuck")
            begin_stop(server.process)
            server.process.process.send_signal(signal.SIGTERM)
            assert_ended(server.process)
        assert_refused_or_cut(stuck)
