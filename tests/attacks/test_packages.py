"""A voice whose files are made to hurt whoever looks at them, in a dry run of a load."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx

from ravenous_engine import TARGET, begun
from refusals import assert_refused
from server_process import HANG_GUARD_S
from siege import MIB, besieged


def look_at(siege, folder):
    """Ask what loading the voice would do."""
    voice = {"id": "evil", "family": "piper", "path": str(folder), "task": "tts", "dry_run": True}
    return httpx.post(f"{siege.url}/v1/models/load", json=voice, timeout=HANG_GUARD_S)


def test_a_voice_of_twenty_million_speakers_is_refused(tmp_path):
    config = voice_in(tmp_path)
    fields = {"phoneme_id_map": {}, "espeak": {}, "audio": {"sample_rate": 1}, "num_symbols": 1}
    config.write_text(json.dumps({**fields, "num_speakers": 20_000_000}))
    with besieged(tmp_path / "server", ui_management=True) as siege, siege.watched(max_growth_bytes=16 * MIB):
        refusal = assert_refused(look_at(siege, config.parent), 400, param="path")
    assert "num_speakers must be an integer from 0 to 10000" in refusal.message


def test_a_configuration_that_is_nested_without_end_is_refused(tmp_path):
    config = voice_in(tmp_path)
    config.write_text("[" * 20 * MIB)
    with besieged(tmp_path / "server", ui_management=True) as siege, siege.watched(max_growth_bytes=16 * MIB):
        refusal = assert_refused(look_at(siege, config.parent), 400, param="path")
    assert "nested too deeply" in refusal.message


def test_a_configuration_whose_values_take_all_memory_costs_the_server_none(tmp_path):
    config = voice_in(tmp_path)
    config.write_text(f"[{'[],' * 20 * MIB}[]]")
    with besieged(tmp_path / "server", ui_management=True) as siege, siege.watched(max_growth_bytes=16 * MIB):
        assert_refused(look_at(siege, config.parent), 503, code="insufficient_memory")


def test_a_fifo_is_refused_and_the_server_ends_when_it_is_told_to(tmp_path):
    config = voice_in(tmp_path)
    os.mkfifo(config)
    with besieged(tmp_path / "server", ui_management=True) as siege:
        with siege.watched(max_growth_bytes=16 * MIB):
            refusal = assert_refused(look_at(siege, config.parent), 400, param="path")
        assert "v.onnx.json is not a regular file" in refusal.message
        siege.process.process.send_signal(signal.SIGTERM)
        assert siege.process.process.wait(HANG_GUARD_S) == 0


def test_an_inspection_that_hangs_ends_with_the_server(tmp_path):
    (tmp_path / "wait").mkdir()
    model = {"id": "evil", "family": "ravenous", "path": str(tmp_path / "wait"), "task": "tts"}
    with (
        begun(tmp_path) as await_begun,
        ThreadPoolExecutor(1) as threads,
        besieged(tmp_path / "server", "--family", TARGET, ui_management=True, drain_timeout_ms=100) as siege,
    ):
        with siege.watched(max_growth_bytes=16 * MIB):
            load = f"{siege.url}/v1/models/load"
            asked = threads.submit(httpx.post, load, json=model, timeout=HANG_GUARD_S)
            await_begun()
        siege.process.process.send_signal(signal.SIGTERM)
        assert siege.process.process.wait(HANG_GUARD_S) == 0
        assert_refused(asked.result(), 503, code="shutting_down")


def voice_in(folder):
    """The configuration, not there yet, of a voice whose graph is empty."""
    (folder / "voice").mkdir()
    (folder / "voice" / "v.onnx").touch()
    return folder / "voice" / "v.onnx.json"
