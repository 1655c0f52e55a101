"""What a supervisor is told, over a real socket like systemd's, with time in the test's hand."""

import os
import socket

import pytest

from antiphon.runtime.supervisor import Supervisor
from antiphon.testing import ManualClock


@pytest.fixture
def notices(tmp_path):
    """The supervisor's socket; nothing that is told waits anywhere else."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(tmp_path / "notify"))
        bound.setblocking(False)
        yield bound


def told(notices):
    """All that has come, in order."""
    seen = []
    try:
        while True:
            seen.append(notices.recv(4096).decode())
    except BlockingIOError:
        return seen


def environment(notices, **more):
    return {"NOTIFY_SOCKET": notices.getsockname(), **more}


def test_it_hears_of_the_beginning_and_of_the_end(notices):
    supervisor = Supervisor(environment(notices), ManualClock())
    supervisor.ready("2 models")
    supervisor.stopping()

    assert told(notices) == ["READY=1\nSTATUS=2 models", "STOPPING=1\nSTATUS=ending what was accepted"]


def test_an_abstract_address_is_reached():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"\0antiphon-test-{os.getpid()}")
        notices.setblocking(False)
        Supervisor({"NOTIFY_SOCKET": f"@antiphon-test-{os.getpid()}"}, ManualClock()).stopping()
        assert len(told(notices)) == 1


def test_signs_of_life_come_twice_as_often_as_wanted_from_ready_to_close(notices):
    clock = ManualClock()
    supervisor = Supervisor(environment(notices, WATCHDOG_USEC="10000000", WATCHDOG_PID=str(os.getpid())), clock)
    clock.advance(100)
    assert told(notices) == []

    supervisor.ready("x")
    clock.advance(4.9)
    assert told(notices) == ["READY=1\nSTATUS=x", "WATCHDOG=1"]
    clock.advance(10)
    assert told(notices) == ["WATCHDOG=1", "WATCHDOG=1"]
    supervisor.stopping()  # it lives on while it drains
    clock.advance(5)
    assert told(notices)[1:] == ["WATCHDOG=1"]
    supervisor.close()
    clock.advance(100)
    assert told(notices) == []


@pytest.mark.parametrize(
    "watch",
    [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}],
)
def test_no_sign_of_life_is_given_that_nobody_asked_this_process_for(notices, watch):
    clock = ManualClock()
    Supervisor(environment(notices, **watch), clock).ready("x")

    assert told(notices) == ["READY=1\nSTATUS=x"]
    assert clock.statistics().pending == ()


def test_the_names_are_gone_from_the_environment_which_workers_inherit(notices):
    names = environment(notices, WATCHDOG_USEC="1000000", WATCHDOG_PID="1", HOME="/")
    Supervisor(names, ManualClock())

    assert names == {"HOME": "/"}


def test_without_a_supervisor_nothing_is_said_and_nothing_breaks(caplog):
    supervisor = Supervisor({}, ManualClock())
    supervisor.ready("x")
    supervisor.stopping()
    supervisor.close()

    assert caplog.text == ""


def test_a_supervisor_that_is_gone_is_one_warning_a_notice(tmp_path, caplog):
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nobody")}, ManualClock()).stopping()

    assert "cannot be told STOPPING=1" in caplog.text


def test_a_supervisor_that_does_not_read_holds_nobody_up(notices, caplog):
    supervisor = Supervisor(environment(notices), ManualClock())
    while "cannot be told" not in caplog.text:  # until its queue is full
        supervisor.ready("x")

    assert set(told(notices)) == {"READY=1\nSTATUS=x"}
