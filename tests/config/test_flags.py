"""Flags over files, flags alone, and the shipped examples."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ModelConfig, ServerConfig, build_config, load_config

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]
PROJECT = Path(__file__).parents[2]


def test_a_flag_wins_over_the_file_and_leaves_the_rest(load: Load) -> None:
    config = load({"port": 1, "host": "::1"}, port=2)
    assert (config.port, config.host) == (2, "::1")


def test_a_flag_that_was_not_given_changes_nothing(load: Load) -> None:
    assert load({"port": 1}, port=None).port == 1


def test_a_false_flag_is_given(load: Load) -> None:
    assert load({"ui_management": True}, ui_management=False).ui_management is False


def test_a_flag_at_fault_is_named_instead_of_the_file(load: Load, refusal: Refusal) -> None:
    line = refusal(load, {}, busy_timeout_ms=-1)
    assert line == "--busy-timeout-ms: wanted whole milliseconds, 0 or more (0 = no bound); found -1"


def test_paths_in_flags_start_at_the_working_folder(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    roots: list[Path | str] = [Path("home"), "home/models"]
    config = load({"models_root": "x"}, models_root=Path("there"), allowed_audio_roots=roots, journal="j.jsonl")
    assert config.models_root == str(tmp_path / "there")
    assert config.journal == str(tmp_path / "j.jsonl")
    assert config.allowed_audio_roots == (str(tmp_path / "home"), str(tmp_path / "home/models"))


def test_flags_alone_make_a_configuration(home: Path) -> None:
    model = {"id": "a", "family": "f", "path": "models/a", "task": "tts"}
    config = build_config({"port": 0, "models": [model]}, source="flags", base=home, parallel_jobs=False)
    assert config.registrations()[0].spec.path == str(home / "models/a")


def test_flags_alone_are_named_as_their_source(refusal: Refusal, home: Path) -> None:
    line = refusal(build_config, {"port": -1}, source="flags", base=home, parallel_jobs=False)
    assert line.startswith("flags: port: wanted ")


@pytest.mark.parametrize(("name", "parallel_jobs", "slots"), [("server.json", False, 1), ("server.toml", True, 2)])
def test_a_shipped_example_loads(tmp_path: Path, name: str, parallel_jobs: bool, slots: int) -> None:
    shutil.copy(PROJECT / "examples" / name, tmp_path)
    for package in ("piper-en-joe", "whisper-tiny-en"):
        (tmp_path / "models" / package).mkdir(parents=True)
    config = load_config(tmp_path / name, parallel_jobs=parallel_jobs)
    assert [(r.spec.id, r.spec.slots, r.lazy) for r in config.registrations()] == [
        ("piper", slots, False),
        ("whisper", slots, True),
    ]


def documented_rows(heading: str) -> list[list[str]]:
    text = (PROJECT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n#")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]
    return [[row[0].strip("`"), row[1].strip("`")] for row in rows]


def written_default(field: str, schema: type[ServerConfig] | type[ModelConfig]) -> str:
    info = schema.model_fields[field]
    words = {
        "lazy": "lazy_load",
        "busy_timeout_ms": "the server's",
        "run_timeout_ms": "the server's",
        "cancel_timeout_ms": "the server's",
        "load_timeout_ms": "the server's",
        "teardown_timeout_ms": "the server's",
        "threads": "auto or cores // slots",
        "isolation": "the server's",
        "models_root": "none",
        "voice_dir": "none",
        "default_voice_preset": "none",
        "default_request_options": "none",
        "api_keys_file": "none",
        "admin_keys_file": "none",
        "journal": "none",
        "tls_cert": "none",
        "tls_key": "none",
    }
    if field == "live_ingest":
        return "none" if schema is ServerConfig else "the server's"
    if info.is_required():
        return "required"
    return words[field] if info.default is None else json.dumps(info.default)


@pytest.mark.parametrize(("heading", "schema"), [("Server fields", ServerConfig), ("Model fields", ModelConfig)])
def test_the_documentation_lists_every_field_with_its_default(
    heading: str, schema: type[ServerConfig] | type[ModelConfig]
) -> None:
    assert documented_rows(heading) == [[field, written_default(field, schema)] for field in schema.model_fields]
