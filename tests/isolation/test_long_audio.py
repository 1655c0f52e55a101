"""Long uploads through a real server: they cost no memory, and those that never fit are told the limit (AUD-14)."""

import pytest

import audio_assets
from audio_assets import MULAW, chunk, fmt_chunk, riff
from controlled_server import CLIP, controlled_server
from isolated_server import children_of, isolated_server
from process_tree import peak_bytes
from refusals import assert_refused
from server_process import started_alone

MIB = 1024 * 1024
MINUTES = 40
LONG = riff(fmt_chunk(8_000, bits=8, tag=MULAW), chunk(b"data", b"\xff" * (MINUTES * 60 * 8_000)))
"""A telephone call: 73 MiB once decoded, and 146 as the model takes it."""

BOUND_BYTES = 72 * MIB
"""Less than either would take; 48 MiB were seen: each begins in memory, and is put into a file at 16."""


@pytest.mark.slow
def test_a_long_recording_is_in_the_memory_of_no_process(tmp_path):
    with isolated_server(tmp_path, lazy_load=False, start=started_alone) as server:
        assert server.transcribe().status_code == 200
        pids = [server.process.process.pid, *(child.pid for child in children_of(server))]
        before = {pid: peak_bytes(pid) for pid in pids}
        answer = server.transcribe(LONG, response_format="verbose_json")
        assert answer.json()["duration"] == MINUTES * 60
        assert {pid for pid in pids if peak_bytes(pid) - before[pid] > BOUND_BYTES} == set()
        assert list(server.process.temp.iterdir()) == []


def test_an_upload_that_can_never_fit_is_told_the_limit_and_harms_nobody(tmp_path):
    with controlled_server(tmp_path, parallel=True, max_pending_audio_mb=1) as server:
        never = audio_assets.wav_bytes(audio_assets.tone(440, 10, 48_000), 48_000)
        refusal = assert_refused(server.transcribe(never), 413, param="file", code="too_large")
        assert "1048576 bytes (max_pending_audio_mb)" in refusal.message
        assert server.transcribe(CLIP).status_code == 200


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_uploads_that_declare_too_much_are_told_so_however_many_come_at_once(tmp_path, isolation):
    """A day of silence is a small file; what it would take once decoded is more than all uploads may have together."""
    day = audio_assets.flac_that_declares(24 * 3600)
    config = {"isolation": isolation, "max_audio_seconds": 3600, "max_pending_audio_mb": 1}
    with controlled_server(tmp_path, parallel=True, **config) as server:
        for answer in [server.threads.submit(server.transcribe, day) for _ in range(6)]:
            refusal = assert_refused(answer.result(), 413, param="file", code="too_large")
            assert "the audio declares 86400 seconds" in refusal.message
            assert "max_audio_seconds" in refusal.message
        assert server.transcribe(CLIP).status_code == 200
        assert list(server.process.temp.iterdir()) == []
