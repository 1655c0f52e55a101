"""Bad audio over HTTP where a process decodes it: the cases SEC-05, -06 and -09, and what they cost the server."""

import os
import signal
import socket

import httpx
import psutil
import pytest

import audio_assets
from antiphon.runtime.file_worker import WORKER
from conformance_client import eventually
from controlled_server import CLIP, TRANSCRIPTIONS
from isolated_server import children_of, isolated_server
from process_tree import descriptor_counts
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S, running_server

BAD = audio_assets.bad_audio()
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with isolated_server(tmp_path_factory.mktemp("uploads")) as server:
        yield server


@pytest.fixture(autouse=True)
def _unharmed(server):
    assert server.transcribe().status_code == 200
    yield
    assert_unharmed(server.process, server.client, server.transcribe)


def codec_workers(server):
    return [child for child in children_of(server) if WORKER in child.cmdline()]


def test_a_server_that_listens_has_a_codec_worker_before_the_first_upload(tmp_path):
    with isolated_server(tmp_path) as server:
        [before] = eventually(lambda: codec_workers(server), bool, "a codec worker")
        assert server.transcribe().status_code == 200
        assert codec_workers(server) == [before]


def test_a_server_whose_models_only_speak_has_a_codec_worker_from_the_first_upload_on(tmp_path):
    speaks = {"id": "tts", "family": "controlled", "path": str(tmp_path), "task": "tts"}
    config = {"models": [speaks], "isolation": "process", "lazy_load": True, "ui_management": True}
    with running_server(tmp_path, config) as server:
        process = psutil.Process(server.process.pid)
        with httpx.Client(base_url=server.url, timeout=HANG_GUARD_S) as client:
            assert client.get("/health").status_code == 200  # what is started with the server has been by now
            assert process.children() == []
            client.post("/v1/models/load", json={**speaks, "id": "asr", "task": "asr"}).raise_for_status()
            heard = client.post(TRANSCRIPTIONS, data={"model": "asr"}, files={"file": ("a.wav", CLIP)})
            assert heard.status_code == 200
        assert len([child for child in process.children() if WORKER in child.cmdline()]) == 1


def test_bad_files_are_refused_and_cost_the_server_neither_memory_nor_a_descriptor(server):
    process = psutil.Process(server.process.process.pid)
    workers, descriptors, before = codec_workers(server), descriptor_counts(server.process), process.memory_info().rss
    for file in BAD.values():
        assert_refused(server.transcribe(file), 400, param="file")
        assert server.client.get("/health").status_code == 200
    assert process.memory_info().rss - before < 8 * MIB
    assert all(worker.memory_info().rss < 128 * MIB for worker in workers)
    assert codec_workers(server) == workers
    assert descriptor_counts(server.process) == descriptors


def test_a_playlist_never_opens_what_it_names(server):
    (server.process.folder / "antiphon_marker.wav").write_bytes(CLIP)
    for playlist in (
        b"ffconcat version 1.0\nfile antiphon_marker.wav\n",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nantiphon_marker.wav\n#EXT-X-ENDLIST\n",
    ):
        assert_refused(server.transcribe(playlist), 400, param="file")


def test_a_playlist_never_opens_a_socket(server):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        for playlist in (
            f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://{address}/leak\n#EXT-X-ENDLIST\n",
            f"ffconcat version 1.0\nfile 'http://{address}/leak'\n",
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 50040 RTP/AVP 0\r\n",
        ):
            assert_refused(server.transcribe(playlist.encode()), 400, param="file")
        with pytest.raises(BlockingIOError):
            listening.accept()
    for worker in codec_workers(server):
        assert worker.net_connections("inet") == []


def test_a_codec_worker_that_is_killed_is_replaced_and_buried(server):
    [before] = codec_workers(server)
    os.kill(before.pid, signal.SIGKILL)
    assert server.transcribe().status_code == 200
    [after] = codec_workers(server)
    assert after.pid != before.pid
    assert not before.is_running()


def test_a_codec_worker_that_stands_still_holds_up_neither_health_nor_speech(server):
    [worker] = codec_workers(server)
    worker.suspend()
    try:
        upload = server.threads.submit(server.transcribe)
        assert server.client.get("/health").status_code == 200
        assert server.speak("hello").status_code == 200
        assert not upload.done()
    finally:
        worker.resume()
    assert upload.result().status_code == 200
