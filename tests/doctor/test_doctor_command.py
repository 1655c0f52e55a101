"""`antiphon doctor` as its user meets it: lines or JSON, and an exit code."""

import json

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from antiphon.doctor.diagnosis import Health, fail, ok, warn, worst
from antiphon.doctor.engines import installed_points
from antiphon.doctor.examination import _looked
from antiphon.doctor.report import closing_line, lines

SUBJECTS = ["python", "processors", "memory", "open files", "temporary files", "locale"]


@pytest.fixture(scope="module", autouse=True)
def _one_engine():
    """The controlled one: to import all the others costs a minute."""
    controlled = [it for it in installed_points() if it.name == "controlled"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("antiphon.doctor.examination.installed_points", lambda: controlled)
        yield


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """What the command says of a server with one controlled model, with `--json`."""
    folder = tmp_path_factory.mktemp("healthy")
    (folder / "checkpoint").mkdir()
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", "slots": 2}
    file = folder / "server.json"
    file.write_text(json.dumps({"port": 0, "models": [model], "models_root": "models", "journal": "j"}))
    return CliRunner().invoke(app, ["doctor", "--config", str(file), "--parallel-jobs", "--json"])


def test_every_subject_is_looked_at_from_the_machine_up_to_the_address(healthy):
    subjects = [it["subject"] for it in json.loads(healthy.stdout)["diagnoses"]]

    assert subjects[: len(SUBJECTS)] == SUBJECTS
    assert subjects[len(SUBJECTS) :] == [
        *("engine controlled", "models root", "configuration", "model m", "journal", "address")
    ]


def test_an_installation_that_serves_has_exit_code_0(healthy):
    told = json.loads(healthy.stdout)

    assert [it for it in told["diagnoses"] if it["health"] == "fail"] == []
    assert (healthy.exit_code, told["health"] in {"ok", "warn"}) == (0, True)


def test_one_that_does_not_serve_has_exit_code_1_and_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "antiphon.doctor.examination.installed_points", list
    )  # they cost a minute, and are not asked for
    file = tmp_path / "server.json"
    file.write_text("{")

    done = CliRunner().invoke(app, ["doctor", "--config", str(file)])
    assert done.exit_code == 1
    at = done.stdout.index("fail  configuration: ")
    assert done.stdout[at:].splitlines()[1] == "      mend the file: docs/configuration.md"
    assert done.stdout.splitlines()[-1].endswith(", 1 fail")


def test_a_look_that_breaks_is_a_diagnosis():
    def broken():
        raise RuntimeError("no such thing")

    (found,) = _looked("memory", broken)
    assert (found.health, found.said) == (Health.FAIL, "cannot be looked at: RuntimeError: no such thing")


def test_the_whole_is_as_bad_as_its_worst_part():
    assert worst([]) is Health.OK
    assert worst([ok("a", ""), warn("b", "", "")]) is Health.WARN
    assert worst([fail("a", "", ""), ok("b", "")]) is Health.FAIL


def test_a_diagnosis_is_a_line_and_its_advice_another():
    assert [it.plain for it in lines(ok("a", "fine [red]"))] == ["ok    a: fine [red]"]
    assert [it.plain for it in lines(warn("b", "ill", "rest"))] == ["warn  b: ill", "      rest"]


def test_the_last_line_counts():
    assert closing_line([ok("a", ""), ok("b", ""), fail("c", "", "")]) == "2 ok, 0 warn, 1 fail"


@pytest.mark.parametrize("text", ["no key", " , "])
def test_the_admin_keys_of_the_environment_are_read(tmp_path, monkeypatch, text):
    monkeypatch.setattr("antiphon.doctor.examination.installed_points", list)
    monkeypatch.setenv("ANTIPHON_ADMIN_KEYS", text)
    (tmp_path / "server.json").write_text("{}")

    done = CliRunner().invoke(app, ["doctor", "--config", str(tmp_path / "server.json")])
    assert "fail  configuration: ANTIPHON_ADMIN_KEYS: " in done.stdout
