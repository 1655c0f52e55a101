"""The cells `rule.*` about what `--parallel-jobs` must not change: answers at one slot, and the other commands."""

import base64
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import httpx
import numpy as np
import pytest

from antiphon.packages.manifest import InstalledFile, Manifest
from antiphon.vocabulary.tasks import Mode, Task
from audio_assets import wav_bytes
from conformance_client import HANG_GUARD_S
from conformance_plugin import cell
from conformance_server import ISOLATIONS, LOAD, TASK_RUN, TASK_STREAM, UNLOAD
from installed_models import installed_folder
from server_process import antiphon, running_server
from tiny_canary import build_canary
from tiny_diarizer import build_diarizer

SENTENCE = "We will walk to the river."


def spoken(client):
    """Speech as a file, and as the answer of the task route without its timing."""
    file = client.post("/v1/audio/speech", json={"model": "tts", "input": SENTENCE, "seed": 7})
    task = client.post(TASK_RUN, json={"model": "tts", "request": {"text": SENTENCE, "seed": 7}})
    assert (file.status_code, task.status_code) == (200, 200)
    return file.content, file.headers["content-type"], without_timing(task)


def heard(client, file):
    """The words, the transcript with all times, and the answer of the task route."""
    form = {"model": "asr", "language": "en", "response_format": "verbose_json"}
    form["timestamp_granularities[]"] = ["word", "segment"]
    transcript = client.post("/v1/audio/transcriptions", data=form, files={"file": ("speech.wav", file)})
    request = {"audio": base64.b64encode(file).decode(), "language": "en"}
    task = client.post(TASK_RUN, json={"model": "asr", "request": request})
    assert (transcript.status_code, task.status_code) == (200, 200)
    return transcript.json()["text"], without_timing(transcript), without_timing(task)


def without_timing(answer):
    """The bytes of an answer, JSON or server-sent events, but for its top-level timing, which it has once."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        told = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
        (content,) = [it for it in map(json.loads, told) if "timing" in it]
    else:
        content = answer.json()
    timing = json.dumps(content["timing"], separators=(",", ":")).encode()
    assert answer.content.count(timing) == 1
    return answer.content.replace(timing, b"null")


def translated(client, file):
    """A transcript with its segments, and a translation as the task route answers it."""
    form = {"model": "canary", "language": "de", "response_format": "verbose_json"}
    transcript = client.post("/v1/audio/transcriptions", data=form, files={"file": ("noise.wav", file)})
    request = {"audio": base64.b64encode(file).decode(), "language": "de", "options": {"target_language": "en"}}
    task = client.post(TASK_RUN, json={"model": "canary", "request": request})
    assert (transcript.status_code, task.status_code) == (200, 200)
    return without_timing(transcript), without_timing(task)


def diarized(client, file):
    """Speaker turns, whole and as a stream tells them."""
    order = {"model": "diar", "request": {"audio": base64.b64encode(file).decode()}}
    whole, stream = client.post(TASK_RUN, json=order), client.post(TASK_STREAM, json=order)
    assert (whole.status_code, stream.status_code) == (200, 200)
    return without_timing(whole), without_timing(stream)


def all_answers(folder, isolation, flags, slots_field, models, ask):
    """What one server answers: cold, warm, warm again, and after unload and reload."""
    fields = {"threads": 1, **slots_field}
    config = {
        "models": [{"id": model_id, **model, **fields} for model_id, model in models.items()],
        "lazy_load": True,
        "ui_management": True,
        **ISOLATIONS[isolation],
    }
    rounds = {}
    with (
        running_server(folder, config, *flags) as process,
        httpx.Client(base_url=process.url, timeout=2 * HANG_GUARD_S) as client,
    ):
        for label in ("cold", "warm", "warm again", "reloaded"):
            if label == "reloaded":
                for model_id in models:
                    assert client.post(UNLOAD, json={"id": model_id}).json()["loaded"] is False
                    assert client.get(f"/v1/models/{model_id}").json()["loaded"] is False
                    assert client.post(LOAD, json={"id": model_id}).json() == {"id": model_id, "loaded": True}
            loaded = {it["id"]: it["loaded"] for it in client.get("/v1/models").json()["data"]}
            assert loaded == dict.fromkeys(models, label != "cold")
            rounds[label] = ask(client)
    return rounds


def answers_of_all_servers(folder, isolation, models, ask):
    """What the serial server answers when it is cold, and which answers of any server are others."""
    starts = {"serial": ([], {}), "omitted": (["--parallel-jobs"], {}), "one": (["--parallel-jobs"], {"slots": 1})}
    with ThreadPoolExecutor() as side_by_side:
        asked = {
            name: side_by_side.submit(all_answers, folder / name, isolation, *start, models, ask)
            for name, start in starts.items()
        }
    told = {name: answers.result() for name, answers in asked.items()}
    cold = told["serial"]["cold"]
    differing = [
        f"{server}, {label}" for server, rounds in told.items() for label, answers in rounds.items() if answers != cold
    ]
    return cold, differing


@pytest.mark.engine
@cell("rule.capacity_one_parity")
def test_rule_capacity_one_parity(tmp_path, isolation):
    """Real checkpoints of the catalogue: Piper speaks, and Whisper hears what it said."""
    models = {
        "tts": {"family": "piper", "task": "tts", "path": installed_folder("piper-en-joe")},
        "asr": {"family": "whisper", "task": "asr", "path": installed_folder("whisper-tiny-en")},
    }

    def ask(client):
        speech = spoken(client)
        return *speech, *heard(client, speech[0])

    cold, differing = answers_of_all_servers(tmp_path, isolation, models, ask)
    assert "river" in cold[3]
    assert differing == []


@cell("rule.capacity_one_parity")
def test_rule_capacity_one_parity_of_canary_and_nemotron(tmp_path, isolation):
    """Generated checkpoints: the graphs of Canary and Nemotron with random weights, a few kilobytes each."""
    canary = build_canary(tmp_path / "canary")
    diarizer = build_diarizer(tmp_path / "diarizer.onnx", "nemotron_hr")
    models = {
        "canary": {"family": "canary", "task": "asr", "path": str(canary)},
        "diar": {"family": "nemotron_diar", "task": "diar", "path": str(diarizer)},
    }
    noise = np.random.Generator(np.random.PCG64(3)).standard_normal(5 * 16_000) * 0.05
    file = wav_bytes(noise.astype(np.float32))

    cold, differing = answers_of_all_servers(
        tmp_path, isolation, models, lambda client: (*translated(client, file), *diarized(client, file))
    )
    assert json.loads(cold[1])["segments"]
    assert json.loads(cold[2])["speaker_turns"]
    assert b'"task.delta"' in cold[3]
    assert differing == []


SABOTAGE = """
import sys
from antiphon.runtime.parallel import ParallelServerState

def trip(self, ports):
    print("the parallel runtime was made", file=sys.stderr)
    raise SystemExit(77)

ParallelServerState.__init__ = trip
from antiphon.cli import main
sys.argv[0] = "antiphon"
main()
"""


def sabotaged(*arguments, cwd):
    """Run a command in which the parallel runtime cannot be made."""
    command = [sys.executable, "-c", SABOTAGE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=HANG_GUARD_S, check=False)


@cell("rule.cli_unchanged", "command")
@pytest.mark.parametrize("arguments", [("say", "hello"), ("transcribe", "a.wav")], ids=lambda it: it[0])
def test_rule_cli_unchanged(tmp_path, arguments):
    assert "slot" not in antiphon(arguments[0], "--help", env={"COLUMNS": "200"}).stdout.lower()
    for option in ("--slots=2", "--parallel-jobs"):
        done = antiphon(*arguments, option, cwd=tmp_path)
        assert done.returncode == 2
        assert "No such option" in done.stderr


@cell("rule.cli_unchanged", "command")
def test_rule_cli_unchanged_without_the_parallel_runtime(tmp_path):
    root = ("--models-root", str(tmp_path))
    for task in (Task.TTS, Task.ASR):
        package = tmp_path / task
        package.mkdir()
        file = InstalledFile("revision", sha256(b"").hexdigest(), 0)
        (package / file.path).touch()
        sources = ("https://example.org/",)
        Manifest(str(task), "controlled", task, Mode.OFFLINE, "MIT", sources, (file,)).write(package)

    said = sabotaged("say", "hello", "-o", "hello.wav", *root, cwd=tmp_path)
    heard_it = sabotaged("transcribe", "hello.wav", "--prompt", "hello", *root, cwd=tmp_path)
    served = sabotaged("serve", "--parallel-jobs", *root, cwd=tmp_path)

    assert (said.returncode, said.stderr) == (0, "")
    assert (heard_it.returncode, heard_it.stdout) == (0, "asr|s1|hello\n")
    assert served.returncode == 77  # the sabotage works
