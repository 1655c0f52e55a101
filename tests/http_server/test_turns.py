"""Connections with much to be worked on take turns, and everything else goes on between two of them."""

import asyncio

from antiphon.http.server.turns import Turns
from listening_stage import until


class Work:
    """So many slices; `log` says when each was done."""

    def __init__(self, turns, name, slices, log):
        self.turns, self.name, self.left, self.log = turns, name, slices, log

    def __call__(self):
        self.left -= 1
        self.log.append(self.name)
        if self.left:
            self.turns.queue(self)


async def test_one_slice_is_done_in_each_round_of_the_loop():
    turns, log = Turns(), []
    for name in "abc":
        turns.queue(Work(turns, name, 3, log))
    rounds = []
    while len(log) < 9:
        before = len(log)
        await asyncio.sleep(0)
        rounds.append(len(log) - before)
    assert max(rounds) == 1
    assert log == list("abcabcabc")


async def test_a_slice_that_fails_does_not_hold_up_the_others():
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context["exception"]))
    turns, log = Turns(), []

    def fail():
        raise ValueError("broken")

    turns.queue(fail)
    turns.queue(Work(turns, "a", 2, log))
    await until(lambda: len(log) == 2)
    assert [str(fault) for fault in faults] == ["broken"]


async def test_it_begins_anew_after_it_has_come_to_rest():
    turns, log = Turns(), []
    for _ in range(2):
        turns.queue(Work(turns, "a", 1, log))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert log == ["a", "a"]
