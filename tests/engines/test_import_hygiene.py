"""Inspecting a model must not import an engine, nor numpy; and a worker imports its own engine alone."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ENGINES = {"onnxruntime", "onnx", "onnx_asr", "ctranslate2", "faster_whisper", "piper", "numpy", "scipy"} | {
    "pocketsphinx",
    "inflect",
}

SERVER = ("http", "service", "config", "cli", "packages", "audio", "runtime.models", "runtime.hosts.thread")

SCRIPT = """
import importlib, sys
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task

module, adapter, family, task, path = sys.argv[1:]
getattr(importlib.import_module(module), adapter)().inspect(ModelSpec("x", family, path, Task(task)))
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""

WORKER = """
import sys
import antiphon.worker.__main__, antiphon.worker.engine, antiphon.worker.line
from antiphon.runtime.discovery import make_adapter
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task

target, family, task, path = sys.argv[1:]
make_adapter(target).load(ModelSpec("x", family, path, Task(task))).open_session()
print(" ".join(sorted(sys.modules)))
"""


def imported_by(module: str, adapter: str, family: str, task: str, path: Path) -> set[str]:
    """The top-level modules that are in memory after an inspect in a fresh interpreter."""
    command = [sys.executable, "-c", SCRIPT, module, adapter, family, task, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(run.stdout.split())


def test_inspecting_a_voice_imports_no_engine(tiny_voice: Callable[..., Path]) -> None:
    imported = imported_by("antiphon_adapters.piper", "PiperAdapter", "piper", "tts", tiny_voice())
    assert "antiphon_adapters" in imported
    assert not imported & ENGINES


def test_inspecting_a_canary_model_imports_no_engine(tiny_canary: Callable[..., Path]) -> None:
    imported = imported_by("antiphon_adapters.canary", "CanaryAdapter", "canary", "asr", tiny_canary())
    assert "antiphon_adapters" in imported
    assert not imported & ENGINES


def test_inspecting_a_diarizer_imports_no_engine(tiny_diarizer: Callable[..., Path]) -> None:
    model = tiny_diarizer("nemotron_hr")
    imported = imported_by("antiphon_adapters.nemotron_diar", "NemotronDiarAdapter", "nemotron_diar", "diar", model)
    assert "antiphon_adapters" in imported
    assert not imported & ENGINES


@pytest.mark.engine
@pytest.mark.parametrize(
    ("module", "adapter", "family", "task", "package"),
    [
        ("whisper", "WhisperAdapter", "whisper", "asr", "whisper-tiny-en"),
        ("pocketsphinx", "PocketsphinxAdapter", "pocketsphinx", "align", "pocketsphinx-align"),
        ("silero", "SileroVadAdapter", "silero_vad", "vad", "silero-vad"),
        ("speaker_clustering", "SpeakerClusteringAdapter", "speaker_clustering", "diar", "speaker-turns"),
    ],
)
def test_inspecting_an_installed_model_imports_no_engine(
    installed: Callable[[str], str], module: str, adapter: str, family: str, task: str, package: str
) -> None:
    imported = imported_by(f"antiphon_adapters.{module}", adapter, family, task, Path(installed(package)))
    assert "antiphon_adapters" in imported
    assert not imported & ENGINES


@pytest.mark.engine
@pytest.mark.parametrize(
    ("module", "adapter", "family", "task", "package", "foreign"),
    [
        ("piper", "PiperAdapter", "piper", "tts", "piper-en-joe", {"faster_whisper", "ctranslate2"}),
        ("whisper", "WhisperAdapter", "whisper", "asr", "whisper-tiny-en", {"piper"}),
        (
            "pocketsphinx",
            "PocketsphinxAdapter",
            "pocketsphinx",
            "align",
            "pocketsphinx-align",
            {"onnxruntime", "piper", "sounddevice"},
        ),
        ("silero", "SileroVadAdapter", "silero_vad", "vad", "silero-vad", {"faster_whisper", "piper", "scipy"}),
        (
            "speaker_clustering",
            "SpeakerClusteringAdapter",
            "speaker_clustering",
            "diar",
            "speaker-turns",
            {"faster_whisper", "piper", "onnx"},
        ),
    ],
)
def test_a_worker_imports_its_own_engine_and_nothing_of_the_server(
    installed: Callable[[str], str], module: str, adapter: str, family: str, task: str, package: str, foreign: set[str]
) -> None:
    command = [sys.executable, "-c", WORKER, f"antiphon_adapters.{module}:{adapter}", family, task, installed(package)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    modules = set(run.stdout.split())
    assert f"antiphon_adapters.{module}" in modules
    server = {"fastapi", "starlette", "uvicorn", "pydantic", "typer"} | {f"antiphon.{it}" for it in SERVER}
    assert not modules & (foreign | server)
