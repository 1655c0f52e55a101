"""Runs each coroutine test on a loop of its own, and checks what every one of them must leave behind: a hook."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import pytest

HANG_GUARD_S = float(os.environ.get("ANTIPHON_HANG_GUARD_S", "30"))
"""No test takes as long as this unless something hangs. Units: seconds."""


@runtime_checkable
class Ending(Protocol):
    """A fixture that has something to end while the loop still runs."""

    async def at_end(self) -> None: ...


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    make_loop = getattr(pyfuncitem.module, "LOOP_FACTORY", None)  # a module may name the loop that its tests are about
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(_run(pyfuncitem.obj, arguments))
    return True


async def _run(test: Callable[..., Awaitable[None]], arguments: Mapping[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    complaints: list[str] = []
    loop.set_exception_handler(lambda _loop, context: complaints.append(repr(context)))
    async with asyncio.timeout(HANG_GUARD_S):
        try:
            await test(**arguments)
        finally:
            for argument in arguments.values():
                if isinstance(argument, Ending):
                    await argument.at_end()
    assert getattr(loop, "_default_executor", None) is None, "nothing may use the loop's default executor"
    assert not complaints, "the loop heard of faults that nobody retrieved"
