"""The way back from a registration to its fields: it loses nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from antiphon.config import ServerConfig, model_registration, written_fields
from antiphon.vocabulary.spec import LiveLimits
from antiphon.vocabulary.states import Isolation

Load = Callable[..., ServerConfig]

FULL = {
    "mode": "streaming",
    "slots": 3,
    "lazy": True,
    "pinned": True,
    "aliases": ["b", "c/d"],
    "busy_timeout_ms": 0,
    "run_timeout_ms": 1,
    "cancel_timeout_ms": 4,
    "load_timeout_ms": 2,
    "teardown_timeout_ms": 3,
    "isolation": "thread",
    "load_options": {"x": [1, None]},
    "session_options": {"y": {"z": 0}},
    "voice_presets": {
        "calm": {"voice": "joe", "language": "auto", "speed": 1.0, "seed": 0, "options": {"noise_w": 0}},
        "alice": {"voice_ref": "alice", "reference_text": ""},
        "plain": {},
    },
    "default_voice_preset": "plain",
    "default_request_options": {"language": "de", "seed": 3, "empty": {}, "none": None},
    "live_ingest": {"idle_timeout_ms": 1, "max_chunk_bytes": 7},
}


def parse(**server: object) -> Callable[..., object]:
    defaults = {"device": "cpu", "lazy_load": False, "isolation": Isolation.PROCESS, "live": LiveLimits()}
    return partial(model_registration, **{**defaults, **server})  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [None, 1, "auto"])
@pytest.mark.parametrize("fields", [{}, FULL], ids=["least", "all"])
def test_the_fields_of_a_registration_make_it_again(load_model: Load, fields: dict, threads: object) -> None:
    (registration,) = load_model(parallel_jobs=True, **fields, threads=threads).registrations()

    written = written_fields(registration, parallel_jobs=True)

    assert parse(parallel_jobs=True)(written) == registration


def test_a_recording_keeps_its_path(load_model: Load, home: Path) -> None:
    (home / "me.wav").touch()
    (registration,) = load_model(voice_presets={"me": {"voice_ref": {"path": "me.wav"}}}).registrations()

    written = written_fields(registration, parallel_jobs=False)

    assert written["voice_presets"] == {"me": {"voice_ref": {"path": str(home / "me.wav")}}}


def test_what_follows_from_the_server_is_left_to_it(load_model: Load) -> None:
    (registration,) = load_model().registrations()

    assert set(written_fields(registration, parallel_jobs=False)) == {
        *("id", "family", "path", "task", "mode", "lazy", "pinned", "live_ingest")
    }
