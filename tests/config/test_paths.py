"""CFG-01 and CFG-04: where a configuration's paths lead, from any working folder and in any locale."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig, load_config

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]


def model_path(config: ServerConfig) -> str:
    return config.registrations()[0].spec.path


@pytest.mark.parametrize("folder", ["/", "home"])
def test_a_relative_path_starts_at_the_file_whatever_the_working_folder(
    load_model: Load, home: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(home.parent / folder)
    assert model_path(load_model()) == str(home / "models/a")


def test_a_file_that_is_named_relatively_starts_paths_at_its_folder(
    load_model: Load, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_model()
    monkeypatch.chdir(home.parent)
    assert model_path(load_config(Path("home/server.json"), parallel_jobs=False)) == str(home / "models/a")


def test_a_path_may_climb_out_of_the_files_folder(load_model: Load, home: Path) -> None:
    (home.parent / "models/a").mkdir(parents=True)
    assert model_path(load_model(path="../models/a")) == str(home.parent / "models/a")


def test_an_absolute_path_stays_as_it_is(load_model: Load, home: Path) -> None:
    assert model_path(load_model(path=str(home / "models/b"))) == str(home / "models/b")


def test_a_link_to_the_file_means_what_the_file_means(load_model: Load, home: Path) -> None:
    load_model()
    link = home.parent / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to("../home/server.json")
    assert model_path(load_config(link, parallel_jobs=False)) == str(home / "models/a")


def test_a_model_that_is_a_link_keeps_its_own_name(load_model: Load, home: Path) -> None:
    (home / "models/b/0123abcd").touch()
    (home / "models/a/voice.onnx").symlink_to("../b/0123abcd")
    assert model_path(load_model(path="models/a/voice.onnx")) == str(home / "models/a/voice.onnx")


def test_dots_after_a_link_go_up_from_where_it_leads(load_model: Load, home: Path) -> None:
    (home / "far/deep").mkdir(parents=True)
    (home / "far/model").mkdir()
    (home / "near").symlink_to("far/deep")
    assert model_path(load_model(path="near/../model")) == str(home / "far/model")


@pytest.mark.parametrize(("path", "target"), [(".", "home"), ("..", ""), ("models/..", "home")])
def test_a_path_of_dots_leads_to_the_folder_itself(load_model: Load, home: Path, path: str, target: str) -> None:
    assert model_path(load_model(path=path)) == str(home.parent / target)


def test_a_missing_model_is_refused_with_the_path_that_was_looked_at(
    load_model: Load, refusal: Refusal, home: Path
) -> None:
    assert refusal(load_model, path="../models/none") == (
        f"server.json: models[0].path: wanted an existing file or folder; found nothing at '{home.parent}/models/none'"
    )


def test_a_link_to_nothing_is_refused(load_model: Load, refusal: Refusal, home: Path) -> None:
    (home / "dangling").symlink_to("nowhere")
    assert refusal(load_model, path="dangling").endswith(f"found nothing at '{home}/dangling'")


def test_a_link_to_itself_is_refused(load_model: Load, refusal: Refusal, home: Path) -> None:
    (home / "loop").symlink_to("loop")
    assert "models[0].path: cannot look at " in refusal(load_model, path="loop")


@pytest.mark.parametrize(
    ("path", "ending"),
    [
        ("", "wanted a path; found ''"),
        ("a\0b", r"wanted a path; found 'a\x00b'"),
        ("\ud800", r"/home/\ud800'"),
        ("\ud800/x", r"wanted a path that this locale can write; found '\ud800/x'"),
        ("x" * 300, ": File name too long"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused(load_model: Load, refusal: Refusal, path: str, ending: str) -> None:
    line = refusal(load_model, path=path)
    assert line.startswith("server.json: models[0].path: ")
    assert line.endswith(ending)


def test_audio_roots_are_resolved_and_must_be_folders(load: Load, refusal: Refusal, home: Path) -> None:
    assert load({"allowed_audio_roots": ["models", "."]}).allowed_audio_roots == (str(home / "models"), str(home))
    assert refusal(load, {"allowed_audio_roots": ["none"]}) == (
        f"server.json: allowed_audio_roots: wanted an existing folder; found nothing at '{home}/none'"
    )
    assert refusal(load, {"allowed_audio_roots": ["server.json"]}) == (
        f"server.json: allowed_audio_roots: wanted a folder; found another file at '{home}/server.json'"
    )


def test_the_models_root_need_not_exist_yet_but_is_never_a_file(load: Load, refusal: Refusal, home: Path) -> None:
    assert load({"models_root": "later"}).models_root == str(home / "later")
    assert refusal(load, {"models_root": "server.json"}) == (
        f"server.json: models_root: wanted a folder; found another file at '{home}/server.json'"
    )


PRINT_PATH = (
    "import sys; from pathlib import Path; from antiphon.config import load_config;"
    "from antiphon.vocabulary.errors import ConfigError\n"
    "try: found = load_config(Path(sys.argv[1]), parallel_jobs=False).registrations()[0].spec.path\n"
    "except ConfigError as error: found = error.message\n"
    "print(ascii(found))"
)


def printed_path(file: Path, **environment: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "LANG", "PYTHONUTF8", "PYTHONC"))
    }
    command = [sys.executable, "-c", PRINT_PATH, str(file)]
    done = subprocess.run(command, env=kept | environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def foreign_file(tmp_path: Path) -> Path:
    folder = tmp_path / "dir ü ש space"
    (folder / "mödel 名/a").mkdir(parents=True)
    data = {"models": [{"id": "a", "family": "f", "path": "mödel 名/a", "task": "tts"}]}
    (folder / "cfg.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return folder / "cfg.json"


@pytest.mark.parametrize("variable", ["LANG", "LC_ALL"])
def test_a_path_of_any_script_loads_under_the_c_locale(foreign_file: Path, variable: str) -> None:
    assert printed_path(foreign_file, **{variable: "C"}) == ascii(str(foreign_file.parent / "mödel 名/a"))


def test_a_locale_that_cannot_write_a_path_is_told_so_in_one_line(foreign_file: Path) -> None:
    line = printed_path(foreign_file, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "models[0].path: wanted a path that this locale can write; found " in line
