"""`threads: auto` is for engines that offer it, and the default only where the audit list has it."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.bootstrap import assemble
from antiphon.config import build_config, usable_cores
from antiphon.runtime.audit import audits
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.threads import with_threads
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.tasks import Mode, Task

FIXED = Capability(frozenset(Task), frozenset(Mode), 16_000, 0)
CHOOSING = replace(FIXED, auto_threads=True)


def registration(family="piper", *, auto=False, asked=False):
    spec = ModelSpec("m", family, "/nowhere", Task.TTS, threads=3, auto_threads=auto)
    return Registration(spec, threads_asked=asked)


def test_an_audited_family_chooses_by_itself_where_nothing_is_asked_for():
    spec = with_threads(registration(), CHOOSING).spec
    assert (spec.threads, spec.auto_threads) == (usable_cores(), True)


def test_a_number_that_is_asked_for_stays():
    asked = registration(asked=True)
    assert with_threads(asked, CHOOSING) == asked


def test_a_family_that_is_not_audited_for_it_chooses_only_where_that_is_asked_for():
    quiet, asking = registration("controlled"), registration("controlled", auto=True, asked=True)
    assert with_threads(quiet, CHOOSING) == quiet
    assert with_threads(asking, CHOOSING) == asking


def test_an_engine_that_cannot_choose_refuses_auto():
    with pytest.raises(ConfigError, match="threads is auto, and whisper cannot choose for each call") as refusal:
        with_threads(registration("whisper", auto=True, asked=True), FIXED)
    assert refusal.value.param == "threads"


def test_piper_alone_is_audited_for_it():
    assert [audit.family for audit in audits() if audit.auto_threads] == ["piper"]


@pytest.mark.parametrize(("threads", "expected"), [({}, False), ({"threads": 1}, False), ({"threads": "auto"}, True)])
async def test_a_configured_model_gets_what_it_asks_for(tmp_path: Path, threads: dict[str, object], expected: bool):
    model = {"id": "m", "family": "controlled", "path": str(tmp_path), "task": "tts", **threads}
    config = build_config({"models": [model]}, source="test", base=tmp_path, parallel_jobs=False)
    assembly = assemble(config, AdapterFinder(), parallel_jobs=False)
    assert assembly.runtime.view("m").registration.spec.auto_threads is expected
    await assembly.close()


def test_a_server_does_not_start_with_auto_for_an_engine_that_cannot_choose(tmp_path: Path):
    (tmp_path / "model.bin").touch()
    (tmp_path / "config.json").write_text("{}")
    model = {"id": "m", "family": "odd", "path": str(tmp_path), "task": "tts", "threads": "auto"}
    config = build_config({"models": [model]}, source="test", base=tmp_path, parallel_jobs=False)
    with pytest.raises(ConfigError, match="model 'm': threads is auto, and odd cannot choose"):
        assemble(config, AdapterFinder(["odd_engine:OddAdapter"]), parallel_jobs=False)


async def test_a_registration_that_asks_for_auto_of_such_an_engine_is_refused_and_changes_nothing(stage):
    asked = stage.registration("new")
    asked = replace(asked, spec=replace(asked.spec, auto_threads=True), threads_asked=True)
    stage.checkpoint("new").set("fixed_threads")
    with pytest.raises(InvalidRequest) as refusal:
        await stage.register(asked)
    assert refusal.value.param == "threads"
    assert stage.runtime.views() == ()
