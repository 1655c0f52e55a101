"""What the table of `antiphon status` says, read as text."""

import json

import pytest
from rich.console import Console

from antiphon.status.board import SHOWN_WAITERS, age, board
from antiphon.status.snapshot import Lease, Model, Snapshot, Waiter, snapshot_of

URL = "http://127.0.0.1:8080"


def lines(*models, width=200):
    """The table's lines, without the spaces that align it."""
    console = Console(width=width)
    with console.capture() as shown:
        console.print(board(Snapshot(models), URL))
    return [" ".join(line.split()) for line in shown.get().splitlines() if line.strip(" ─")]


def request(position, age_ms=10):
    return Waiter(position, "request", "infer", age_ms)


def test_each_slot_is_a_cell_free_or_with_the_age_of_its_run():
    model = Model("tts", "ready", 3, leases=(Lease("infer", 1234, slot=1),), task="tts")

    assert lines(model)[2] == "tts tts ready [0 free] [1 infer 1.2 s] [2 free]"


def test_an_exclusive_lease_is_one_cell_over_all_slots():
    model = Model("tts", "reconfiguring", 2, leases=(Lease("load", 61_000),), task="tts")

    assert lines(model)[2] == "tts tts reconfiguring [all load 1:01 min]"


def test_nothing_that_a_server_says_steers_the_terminal():
    escape = "\x1b]0;title\x07\x9b31m"
    lease, waiter = Lease(escape, 5, slot=0), Waiter(1, "request", escape, 5)
    exclusive, barrier = Lease(escape, 5), Waiter(1, escape, escape, 5)
    every = {"last_error": escape, "task": escape, "replica": escape}

    shown = "".join(
        lines(
            Model(escape, escape, 1, leases=(lease,), queue=(waiter,), waiting=1, **every),
            Model(escape, escape, 1, leases=(exclusive,), queue=(barrier,), waiting=1, **every),
            width=1000,
        )
    )
    assert shown.count(r"\u001b]0;title\u0007\u009b31m") == 14
    assert not any(sign in shown for sign in "\x1b\x07\x9b")


def test_the_queue_is_in_order_and_its_barriers_stand_out():
    queue = (request(1), Waiter(2, "management", "unload", 40), request(3))
    model = Model("asr", "ready", 1, leases=(Lease("infer", 5, slot=0),), queue=queue, waiting=3)

    assert lines(model)[2].endswith("[0 infer 5 ms] 1 infer 10 ms, | 2 unload 40 ms |, 3 infer 10 ms")


def test_a_long_queue_is_cut_and_its_rest_counted():
    queue = tuple(map(request, range(1, 11)))
    last_shown = SHOWN_WAITERS

    assert lines(Model("asr", "ready", 1, queue=queue, waiting=1500))[2].endswith(
        f"{last_shown} infer 10 ms, +{1500 - last_shown} more"
    )


def test_memory_and_the_last_error_are_shown_and_summed_up():
    first = Model("a", "ready", 1, resident_bytes=210 * 1024**2)
    second = Model("b", "unloaded", 1, last_error="the model could not be loaded")

    summary, _, loaded, failed = lines(first, second)
    assert summary == f"{URL} models: 2, ready: 1, 210 MiB"
    assert loaded == "a ready [0 free] 210 MiB"
    assert failed == "b unloaded [0 free] the model could not be loaded"


def test_a_server_without_models_has_a_head_alone():
    assert lines() == [f"{URL} models: 0, ready: 0, 0 MiB", "model task state slots queue memory last error"]


def test_what_a_server_says_is_neither_markup_nor_a_terminals_order():
    model = Model("[red]x[/red]", "ready", 1, last_error="a\x1b[2Jb\nc")

    assert lines(model)[2] == "[red]x[/red] ready [0 free] a\\u001b[2Jb\\nc"


def test_a_narrow_terminal_loses_no_slot():
    model = Model("a-model-of-some-length", "ready", 4, task="tts", last_error="one two three four five")

    shown = " ".join(lines(model, width=60))
    assert all(str(slot) in shown for slot in range(4))
    assert "five" in shown


@pytest.mark.parametrize(
    ("age_ms", "said"),
    [(0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (59_940, "59.9 s"), (60_000, "1:00 min"), (3_725_000, "1:02:05")],
)
def test_an_age_is_said_as_people_say_it(age_ms, said):
    assert age(age_ms) == said


def test_a_snapshot_is_read_from_the_two_answers():
    status = {
        "models": [
            {
                "id": "m",
                "state": "ready",
                "loaded": True,
                "slots": 2,
                "waiting": 1,
                "leases": [{"slot": 1, "kind": "request", "operation": "infer", "age_ms": 120}],
                "queue": [{"position": 1, "kind": "management", "operation": "unload", "age_ms": 4, "waits_for": []}],
                "resident_bytes": None,
                "last_error": None,
                "of_a_later_version": 1,
            }
        ]
    }
    models = {"object": "list", "data": [{"id": "m", "task": "tts"}, {"id": "alias", "alias_of": "m", "task": "tts"}]}

    assert snapshot_of(json.dumps(status).encode(), json.dumps(models).encode()) == Snapshot(
        (
            Model(
                "m",
                "ready",
                2,
                leases=(Lease("infer", 120, slot=1),),
                queue=(Waiter(1, "management", "unload", 4),),
                waiting=1,
                task="tts",
            ),
        )
    )


def test_a_model_that_came_between_the_two_answers_has_no_task_yet():
    status = b'{"models": [{"id": "new", "state": "loading", "slots": 1}]}'

    assert snapshot_of(status, b'{"data": []}').models == (Model("new", "loading", 1),)


@pytest.mark.parametrize("status", [b"", b"<html>", b"[]", b'{"models": [{"id": 1}]}', b'{"models": null}', b"\xff"])
def test_anything_else_is_no_snapshot(status):
    with pytest.raises(ValueError):
        snapshot_of(status, b'{"data": []}')


def test_a_model_of_one_of_several_servers_says_whose_it_is():
    assert lines(Model("tts", "ready", 1, replica="x1"))[2].startswith("tts @x1 ")
