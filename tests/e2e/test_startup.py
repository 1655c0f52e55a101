"""How the server starts and stops: what it imports, what it says, and what it refuses in one line."""

import json
import signal
import socket
from pathlib import Path

import httpx
import pytest

from installed_models import installed_model
from server_process import HANG_GUARD_S, antiphon, error_lines, running_server, started_alone

ENGINES = {"onnxruntime", "onnx", "ctranslate2", "faster_whisper", "piper"}
SERVER = {"fastapi", "uvicorn", "uvloop", "starlette", "pydantic", "av", "numpy", "soundfile", "soxr"}
NOTICE = "--parallel-jobs is experimental"
TELL_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}


def imported(log):
    """The packages whose import Python has told of (python -X importtime)."""
    lines = [line for line in log.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def model(folder, **fields):
    """A controlled model that is only loaded when it is asked for something."""
    (folder / "checkpoint").mkdir(exist_ok=True)
    return {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", "lazy": True, **fields}


def refused_at_start(tmp_path, config, *flags):
    """The one line that a server leaves with."""
    file = tmp_path / "server.json"
    file.write_text(json.dumps(config))
    done = antiphon("serve", "--config", str(file), *flags)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == len(error_lines(done.stderr)) == 1, done.stderr
    return done.stderr


@pytest.mark.engine
def test_no_engine_is_imported_before_a_model_is_loaded(tmp_path):
    models = [
        installed_model("piper-en-joe", "piper", lazy=True),
        installed_model("whisper-tiny-en", "whisper", lazy=True),
    ]
    with running_server(
        tmp_path, {"models": models}, "--parallel-jobs", env=TELL_IMPORTS, start=started_alone
    ) as server:
        assert httpx.get(f"{server.url}/v1/models", timeout=HANG_GUARD_S).status_code == 200
        before = imported(server.log.read_text())
        spoken = httpx.post(f"{server.url}/v1/audio/speech", json={"model": "piper", "input": "Hi."}, timeout=60)

    assert "uvicorn" in before
    assert before & ENGINES == set()
    assert spoken.status_code == 200
    assert "onnxruntime" in imported(server.log.read_text())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["serve", "--help"], ["models", "--help"]], ids=str)
def test_help_imports_no_server(arguments):
    done = antiphon(*arguments, env=TELL_IMPORTS)

    assert done.returncode == 0
    assert "typer" in imported(done.stderr)
    library = {"pydantic"} if arguments != ["--help"] else set()  # typer itself tries it when it reads arguments
    assert imported(done.stderr) & (SERVER | ENGINES) <= library


def test_nothing_to_serve_is_one_line(tmp_path):
    done = antiphon("serve", "--models-root", str(tmp_path))

    assert done.returncode == 1
    assert error_lines(done.stderr) == done.stderr.splitlines()
    assert "antiphon models install" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused_at_start(tmp_path, {"port": port, "models": [model(tmp_path)]})

    assert str(port) in line


@pytest.mark.parametrize(("number", "flags"), [(signal.SIGTERM, []), (signal.SIGINT, ["--parallel-jobs"])])
def test_a_stop_signal_ends_it_with_exit_code_0(tmp_path, number, flags):
    with running_server(tmp_path, {"models": [model(tmp_path)]}, *flags, start=started_alone) as server:
        assert httpx.get(f"{server.url}/health", timeout=HANG_GUARD_S).status_code == 200
        assert server.stop(number) == 0

    assert "Traceback" not in server.log.read_text()


def test_a_stop_signal_lets_a_running_request_end(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "run.ms").write_text("500")
    with running_server(tmp_path, {"models": [model(tmp_path)]}) as server:
        with httpx.stream(
            "POST",
            f"{server.url}/v1/audio/speech",
            json={"model": "m", "input": "x", "stream_format": "audio"},
            timeout=HANG_GUARD_S,
        ) as answer:
            assert answer.status_code == 200
            server.process.send_signal(signal.SIGTERM)
            assert len(answer.read()) > 44
        assert server.process.wait(HANG_GUARD_S) == 0


def test_the_notice_comes_with_parallel_jobs_alone(tmp_path):
    logs = {}
    for name, flags in {"serial": [], "parallel": ["--parallel-jobs"]}.items():
        with running_server(tmp_path / name, {"models": []}, *flags) as server:
            pass
        logs[name] = server.log.read_text()

    assert NOTICE not in logs["serial"]
    assert logs["parallel"].count(NOTICE) == 1


def test_slots_without_the_flag_are_refused(tmp_path):
    line = refused_at_start(tmp_path, {"models": [model(tmp_path, slots=1)]})

    assert "models[0].slots" in line
    assert "--parallel-jobs" in line


def test_more_slots_than_the_audit_list_allows_are_refused_at_the_start(tmp_path):
    config = {"device": "cuda", "models": [model(tmp_path, slots=2)]}

    assert "slots" in refused_at_start(tmp_path, config, "--parallel-jobs")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"family": "nothing"}, "nothing"),
        ({"voice_presets": []}, "server.json: models[0].voice_presets: wanted"),
        (
            {"voice_presets": {"p": {"voice": "x"}}},
            "server.json: models[0].voice_presets.p.voice: there is no voice 'x'; the model has p",
        ),
    ],
)
def test_a_model_that_cannot_be_served_is_one_line(tmp_path, fields, named):
    assert named in refused_at_start(tmp_path, {"models": [model(tmp_path, **fields)]})


def test_a_model_that_is_not_lazy_loads_once_the_server_listens(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "load.hold").touch()
    with running_server(tmp_path, {"models": [model(tmp_path, lazy=False)]}) as server:
        assert httpx.get(f"{server.url}/v1/models/m", timeout=HANG_GUARD_S).json()["loaded"] is False
        (tmp_path / "checkpoint" / "load.hold").unlink()
        spoken = httpx.post(f"{server.url}/v1/audio/speech", json={"model": "m", "input": "x"}, timeout=HANG_GUARD_S)
        assert spoken.status_code == 200

    events = [json.loads(line)["step"] for line in (tmp_path / "checkpoint" / "events.jsonl").read_text().splitlines()]
    assert events.count("load") == 1


def test_an_eager_model_that_does_not_load_stops_no_server(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "load.fail").write_text("")
    with running_server(tmp_path, {"models": [model(tmp_path, lazy=False)]}) as server:
        assert httpx.get(f"{server.url}/health", timeout=HANG_GUARD_S).status_code == 200


def test_the_same_file_is_served_from_any_working_folder(tmp_path):
    config = {"models": [model(tmp_path, path="../checkpoint")]}
    with running_server(tmp_path / "elsewhere", config, cwd=Path("/")) as server:
        assert httpx.get(f"{server.url}/health", timeout=HANG_GUARD_S).json()["models"] == 1
