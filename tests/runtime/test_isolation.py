"""An engine that keeps Python's lock never runs in the server's own process."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.bootstrap import assemble
from antiphon.config import build_config
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.isolation import isolated
from antiphon.testing import ControlledCheckpoint
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task

FREE = Capability(frozenset(Task), frozenset(Mode), 16_000, 0)
GREEDY = replace(FREE, holds_gil=True)


def registration(isolation, *, asked):
    spec = ModelSpec("m", "greedy", "/nowhere", Task.ALIGN, isolation=isolation)
    return Registration(spec, isolation_asked=asked)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("isolation", Isolation)
def test_an_engine_that_lets_go_of_the_lock_runs_where_it_was_to(isolation, asked):
    given = registration(isolation, asked=asked)
    assert isolated(given, FREE) == given


def test_one_that_keeps_it_gets_a_process_where_only_the_server_says_thread():
    found = isolated(registration(Isolation.THREAD, asked=False), GREEDY)
    assert found == registration(Isolation.PROCESS, asked=False)


def test_one_that_keeps_it_is_refused_where_the_model_itself_asks_for_a_thread():
    with pytest.raises(ConfigError, match="greedy needs process: it keeps Python's lock") as refusal:
        isolated(registration(Isolation.THREAD, asked=True), GREEDY)
    assert refusal.value.param == "isolation"


async def test_a_registration_that_asks_for_a_thread_is_refused_and_changes_nothing(stage):
    stage.checkpoint("new").set("holds_gil")
    asked = replace(stage.registration("new"), isolation_asked=True)
    with pytest.raises(InvalidRequest) as refusal:
        await stage.register(asked)
    assert refusal.value.param == "isolation"
    assert stage.runtime.views() == ()


async def test_a_registration_that_asks_for_nothing_gets_a_process(stage):
    stage.checkpoint("new").set("holds_gil")
    view = await stage.register(stage.registration("new"))
    assert view.registration.spec.isolation is Isolation.PROCESS


def assembled(folder: Path, **fields: object):
    checkpoint = ControlledCheckpoint(folder / "m")
    checkpoint.set("holds_gil")
    model = {"id": "m", "family": "controlled", "path": str(checkpoint.path), "task": "align", **fields}
    config = build_config({"models": [model], "isolation": "thread"}, source="test", base=folder, parallel_jobs=False)
    return assemble(config, AdapterFinder(), parallel_jobs=False)


async def test_a_server_with_threads_starts_with_such_a_model_in_a_process(tmp_path):
    assembly = assembled(tmp_path)
    assert assembly.runtime.view("m").registration.spec.isolation is Isolation.PROCESS
    await assembly.close()


async def test_a_server_does_not_start_with_such_a_model_in_a_thread(tmp_path):
    with pytest.raises(ConfigError, match="model 'm': isolation is thread"):
        assembled(tmp_path, isolation="thread")
