"""What the doctor says of engines: real distributions in a folder, which are absent, old, broken or deadly."""

import os
from importlib.metadata import distributions
from pathlib import Path

import pytest

import antiphon.doctor.engines
from antiphon.doctor.diagnosis import Health
from antiphon.doctor.engines import engine, engines, installed_points

OK, WARN, FAIL = Health
CONTROLLED = "antiphon.testing.controlled:ControlledAdapter"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that Python finds distributions in, in this process and those that it starts."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    antiphon.doctor.engines._modules.cache_clear()
    yield tmp_path
    antiphon.doctor.engines._modules.cache_clear()


def install(site: Path, name, version="1.0", code=None, requires=(), points=()):
    """Install a distribution, with a module of its name unless there is no code for one."""
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    extras = "".join(f"Provides-Extra: {extra}\nRequires-Dist: {it}; extra == '{extra}'\n" for extra, it in requires)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extras}")
    (folder / "entry_points.txt").write_text("[antiphon.adapters]\n" + "".join(f"{it}\n" for it in points))
    if code is not None:
        (site / f"{name}.py").write_text(code)
        (folder / "top_level.txt").write_text(f"{name}\n")


def family(site, *, requires="some_engine>=1", target=CONTROLLED):
    """The entry point of a family whose extra asks for this."""
    install(site, "adapters", requires=[("my-family", requires)], points=[f"my_family = {target}"])
    (point,) = next(it for it in distributions(path=[str(site)]) if it.name == "adapters").entry_points
    return point


def test_an_engine_that_is_there_and_can_be_imported_is_in_order(site):
    install(site, "some_engine", "1.5", code="")

    found = engine(family(site), ["my_family"])
    assert (found.health, found.said) == (OK, "some_engine 1.5")


@pytest.mark.parametrize(("used", "health"), [(["my_family"], FAIL), ([], OK)])
def test_an_engine_that_is_absent_hinders_only_who_uses_it(site, used, health):
    found = engine(family(site), used)

    assert found.health is health
    assert "pip install 'antiphon[my-family]'" in found.said + found.advice


@pytest.mark.parametrize(("used", "health"), [(["my_family"], FAIL), ([], WARN)])
def test_an_engine_of_another_version_is_named_with_the_one_that_is_wanted(site, used, health):
    install(site, "some_engine", "0.9", code="")

    found = engine(family(site), used)
    assert (found.health, found.said) == (health, "some_engine is 0.9, and >=1 is wanted")


def test_an_engine_that_cannot_be_imported_says_why(site):
    install(site, "some_engine", "1.5", code="raise ImportError('libespeak.so: no such file')")

    found = engine(family(site), ["my_family"])
    assert found.health is FAIL
    assert found.said == "some_engine 1.5: it cannot be imported: ImportError: libespeak.so: no such file"


def test_an_engine_for_another_processor_ends_no_doctor(site):
    install(site, "some_engine", "1.5", code="import os, signal; os.kill(os.getpid(), signal.SIGILL)")

    found = engine(family(site), ["my_family"])
    assert (found.health, found.said) == (FAIL, "some_engine 1.5: its import ends the process (SIGILL)")


def test_an_adapter_that_cannot_be_imported_is_named(site):
    found = engine(family(site, target="no_such_module:Adapter"), ["my_family"])

    assert found.health is FAIL
    assert "'no_such_module:Adapter' cannot be imported" in found.said
    assert "adapters" in found.advice


def test_a_family_that_two_distributions_claim_is_a_warning_and_one_that_nobody_brings_is_a_fault(site):
    install(site, "first", points=[f"mine = {CONTROLLED}"])
    install(site, "second", points=["mine = elsewhere:Adapter"])
    points = [point for it in distributions(path=[str(site)]) for point in it.entry_points]

    found = [(it.subject, it.health) for it in engines(["theirs"], points)]
    assert found[0] == ("engine mine", WARN)
    assert found[-1] == ("engine theirs", FAIL)


@pytest.mark.engine
def test_the_engines_of_this_installation_are_in_order():
    used = ["piper", "silero_vad", "whisper"]
    found = {it.subject: it for it in engines(used, [it for it in installed_points() if it.name in used])}

    assert [it for it in found.values() if it.health is not OK] == []
    assert "piper-tts" in found["engine piper"].said
    assert "ctranslate2" in found["engine whisper"].said
    assert "onnxruntime" in found["engine silero_vad"].said
