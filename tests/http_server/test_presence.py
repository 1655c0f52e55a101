"""Work is done only for a client that is there: before it begins, while it runs, with and without a listener's word."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request

from antiphon.http.presence import PRESENCE, Presence, while_connected


class Work:
    """Work that waits for `go`; it notes how far it came."""

    def __init__(self):
        self.has_begun = asyncio.Event()
        self.go = asyncio.Event()
        self.steps = []

    async def run(self):
        self.steps.append("begun")
        self.has_begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.steps.append("cancelled")
            raise
        self.steps.append("done")
        return "answer"


def request_of(presence=None, leaves=None):
    """A request whose listener keeps a presence; or one whose `receive` alone tells that the event `leaves` is set."""

    async def receive():
        assert leaves is not None, "nobody needs to receive"
        await leaves.wait()
        return {"type": "http.disconnect"}

    scope = {"type": "http", "headers": []}
    return Request(scope if presence is None else {**scope, PRESENCE: presence}, receive)


async def begun(work, request):
    """The task of a request whose work has begun."""
    task = asyncio.create_task(while_connected(request, work.run()))
    await work.has_begun.wait()
    return task


async def test_work_for_a_client_that_stays_gives_its_result():
    work, presence = Work(), Presence()
    task = await begun(work, request_of(presence))
    work.go.set()

    assert await task == "answer"
    presence.leave()  # too late to cancel anything
    assert work.steps == ["begun", "done"]


async def test_a_client_that_leaves_cancels_its_work_at_once():
    work, presence = Work(), Presence()
    task = await begun(work, request_of(presence))

    presence.leave()
    work.go.set()  # in the same turn of the loop, and too late

    with pytest.raises(ClientDisconnect):
        await task
    assert work.steps == ["begun", "cancelled"]
    assert task.cancelling() == 0


async def test_for_a_client_that_has_left_work_does_not_begin():
    work, presence = Work(), Presence()
    presence.leave()

    with pytest.raises(ClientDisconnect):
        await while_connected(request_of(presence), work.run())
    assert work.steps == []


async def test_a_server_that_cancels_a_request_is_no_client_that_leaves():
    work, presence = Work(), Presence()
    task = await begun(work, request_of(presence))

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not presence.has_left()


async def test_a_request_that_is_cancelled_and_left_at_once_stays_cancelled():
    work, presence = Work(), Presence()
    task = await begun(work, request_of(presence))

    presence.leave()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_word_of_the_listener_the_request_is_asked():
    work, leaves = Work(), asyncio.Event()
    task = await begun(work, request_of(leaves=leaves))

    leaves.set()

    with pytest.raises(ClientDisconnect):
        await task
    assert work.steps == ["begun", "cancelled"]
