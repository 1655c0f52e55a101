"""Listeners beside the default one are opened, served and joined as one, and one that breaks is noticed."""

import asyncio

import pytest

from antiphon.listeners.kinds import make_listener
from antiphon.listeners.side import SideListeners
from antiphon.ports.listener import PeerLimits, Served, StopOrder
from antiphon.vocabulary.errors import ConfigError, ListenerBroken


class Listed:
    """A listener that writes down what happens to it; it returns once it is `drained`."""

    def __init__(self, name, log, *, open_fault=None, serve_fault=None):
        self.name = name
        self.log = log
        self.drained = asyncio.Event()
        self.faults = {"open": open_fault, "serve": serve_fault}

    def open(self):
        self._do("open")
        return self.name

    async def serve(self, served):
        self._do("serve")
        await served.stop.begun.wait()
        await self.drained.wait()
        self._do("return")

    def close(self):
        self._do("close")

    def _do(self, what):
        self.log.append(f"{self.name} {what}")
        if fault := self.faults.get(what):
            raise fault


def served():
    return Served(None, PeerLimits(), StopOrder())


async def turn():
    """Let every task go as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_each_is_waited_for_until_it_has_drained():
    log, given, broken = [], served(), []
    first, second = Listed("a", log), Listed("b", log)
    side = SideListeners([first, second])
    side.open()
    side.start(given, lambda: broken.append(True))
    await turn()
    given.stop.begun.set()
    first.drained.set()
    joining = asyncio.ensure_future(side.join())
    await turn()
    assert not joining.done()
    second.drained.set()
    await joining
    assert log == ["a open", "b open", "a serve", "b serve", "a return", "b return"]
    assert broken == []


@pytest.mark.parametrize("fault", [ConfigError("no"), OSError("no")], ids=lambda fault: type(fault).__name__)
async def test_one_that_cannot_be_opened_leaves_none_open(fault):
    log = []
    side = SideListeners([Listed("a", log), Listed("b", log, open_fault=fault), Listed("c", log)])
    with pytest.raises(ConfigError, match=r"no$"):
        side.open()
    assert log == ["a open", "b open", "a close"]


async def test_what_was_opened_and_is_not_served_is_closed():
    log = []
    side = SideListeners([Listed("a", log), Listed("b", log)])
    side.open()
    side.close()
    side.close()
    await side.join()
    assert log == ["a open", "b open", "b close", "a close"]


async def test_one_that_breaks_begins_the_stop_and_the_others_are_still_joined():
    log, given = [], served()
    healthy = Listed("b", log)
    side = SideListeners([Listed("a", log, serve_fault=RuntimeError("no reason")), healthy])
    side.open()
    side.start(given, given.stop.begun.set)
    await given.stop.begun.wait()
    joining = asyncio.ensure_future(side.join())
    await turn()
    assert not joining.done()
    healthy.drained.set()
    with pytest.raises(ListenerBroken, match="the listener on a broke: no reason"):
        await joining


async def test_one_that_returns_before_the_stop_is_broken_too():
    given = served()

    class Fleeting(Listed):
        async def serve(self, served):
            pass

    side = SideListeners([Fleeting("a", [])])
    side.open()
    side.start(given, given.stop.begun.set)
    await given.stop.begun.wait()
    with pytest.raises(ListenerBroken, match="ended by itself"):
        await side.join()


def test_an_unknown_kind_is_refused_with_those_that_are_known():
    with pytest.raises(ConfigError, match=r"^there is no listener of the kind 'pigeon'; installed are .*unix"):
        make_listener("pigeon", {})


@pytest.mark.parametrize("options", [{}, {"path": "a", "mode": "0666"}, {"path": 1}])
def test_a_unix_listener_takes_a_path_and_nothing_else(options):
    with pytest.raises(ConfigError, match=r"^listeners: unix wants a path and no other option"):
        make_listener("unix", options)
