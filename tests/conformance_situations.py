"""Models in the middle of something, for a test to go on from. What must happen next is the test's matter."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from antiphon.testing import ControlledCheckpoint
from antiphon.testing.events import FILE_NAME
from conformance_client import Pending, eventually
from conformance_server import Model, Server
from conformance_standing import comes_to, standing

NO_MEMORY_HAS_SO_MUCH = str(2**60)
"""Bytes that a checkpoint may say its weights take, for a load that no memory guard lets begin."""


def last_of_load(slots: int) -> str:
    """The step that ends a load: held there, the weights and a part of the sessions exist, and any check is over."""
    return "clone" if slots > 1 else "open"


def cold_model(server: Server, *, claimed_bytes: int | None = None) -> Model:
    """A registered model that is not loaded, and whose log begins now."""
    model = server.new_model(loaded=False, claimed_bytes=claimed_bytes)
    (model.checkpoint.path / FILE_NAME).unlink()
    return model


def fill(model: Model, slots: int, *, queued: int = 0) -> tuple[list[Pending], list[str]]:
    """Start as many requests as the idle model has slots, then one after the other those that queue: calls and texts.

    Its runs or its load must be held.
    """
    texts = [f"slot {number}" for number in range(slots)] + [f"queued {number}" for number in range(queued)]
    calls = [model.infer(text) for text in texts[:slots]]
    model.wait_listed(active_slots=slots)
    for place in range(queued):
        calls.append(model.infer(texts[slots + place]))
        model.wait_listed(queued_requests=place + 1)
    return calls, texts


def occupy(model: Model, count: int, name: str = "earlier") -> list[Pending]:
    """Start as many requests, and return once each is in a run; the test holds `run`. Their texts are `NAME 0` ..."""
    calls = [model.infer(f"{name} {number}") for number in range(count)]
    for number in range(count):
        model.checkpoint.wait_for("run", text=f"{name} {number}")
    return calls


@contextmanager
def occupied_cold(server: Server, slots: int) -> Iterator[tuple[Model, Pending]]:
    """An unloaded model that a registration loads; it will be refused, and leave the model unloaded as it was."""
    model = cold_model(server)
    replacement = model.replacement("v2")
    replacement.set("capacity", "1")
    with replacement.held("load"):
        register = model.register(path=str(replacement.path), slots=max(slots, 2))
        replacement.wait_for("load")
        comes_to(model, standing("loading", slots=slots, leases=["load"]))
        yield model, register


@contextmanager
def loading(server: Server, slots: int, *, queued: int = 0) -> Iterator[tuple[Model, list[Pending], list[str]]]:
    """A model whose pool is half built, on behalf of `slots` requests and some that queue."""
    model, step = cold_model(server), last_of_load(slots)
    with model.checkpoint.held(step):
        calls, texts = fill(model, slots, queued=queued)
        model.checkpoint.wait_for(step)
        comes_to(model, standing("loading", slots=slots, leases=["infer"] * slots, queue=["infer"] * queued))
        yield model, calls, texts


@contextmanager
def reconfiguring(server: Server, slots: int) -> Iterator[tuple[Model, ControlledCheckpoint, Pending]]:
    """A model whose replacement, revision `v2`, is committed and half built."""
    model, step = server.new_model(), last_of_load(slots)
    replacement = model.replacement("v2")
    with replacement.held(step):
        register = model.register(path=str(replacement.path))
        replacement.wait_for(step)
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"]))
        yield model, replacement, register


@contextmanager
def unloading(server: Server, slots: int) -> Iterator[tuple[Model, Pending]]:
    """A model in the middle of its teardown."""
    model = server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")
        comes_to(model, standing("unloading", slots=slots, leases=["unload"]))
        yield model, unload


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Stop the server's process for the block: calls that are opened in it are all read in one step afterwards."""
    process = psutil.Process(server.process.process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        eventually(process.status, lambda it: it == psutil.STATUS_STOPPED, "a stopped server")
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)
