"""A server that speaks HTTPS: it says so, it answers, it refuses bad certificates at the start, and it stops."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from listener_stop import address_of, begin_stop, wait_disconnected
from server_process import HANG_GUARD_S, antiphon, error_lines, running_server
from tls_files import TlsFiles


@pytest.fixture
def files(tmp_path):
    return TlsFiles(tmp_path)


def config(cert, key, **fields):
    (cert.parent / "checkpoint").mkdir(exist_ok=True)
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", "lazy": True}
    return {"models": [model], "tls_cert": cert.name, "tls_key": key.name, "drain_timeout_ms": 0, **fields}


def head(path="/health"):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode()


def test_it_announces_https_and_answers(tmp_path, files):
    with running_server(tmp_path, config(*files.certificate())) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=server.url, verify=files.client(), timeout=HANG_GUARD_S) as client:
            assert client.get("/health").json() == {"status": "ok", "models": 1}
            spoken = client.post("/v1/audio/speech", json={"model": "m", "input": "x"})
        assert spoken.status_code == 200
        assert spoken.content[:4] == b"RIFF"


def test_what_is_no_tls_is_dropped_and_harms_nothing(tmp_path, files):
    with running_server(tmp_path, config(*files.certificate())) as server:
        with socket.create_connection(address_of(server.url), HANG_GUARD_S) as plain:
            plain.sendall(head() + b"\r\n")
            assert b"HTTP/1.1 200" not in b"".join(iter(lambda: plain.recv(65536), b""))
        assert httpx.get(f"{server.url}/health", verify=files.client(), timeout=HANG_GUARD_S).status_code == 200
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("flags", [["--tls-cert", "cert.pem"], ["--tls-key", "cert.key"]])
def test_one_of_the_two_files_alone_is_one_line(tmp_path, files, flags):
    files.certificate()
    assert "tls_cert and tls_key go together" in refused_at_start(tmp_path, {}, *flags)


def test_a_file_that_is_missing_is_one_line(tmp_path, files):
    files.certificate()
    line = refused_at_start(tmp_path, {}, "--tls-cert", "none.pem", "--tls-key", "cert.key")
    assert line.startswith("antiphon: --tls-cert: wanted an existing file or folder; found nothing at ")


def test_a_key_of_another_certificate_is_one_line(tmp_path, files):
    (cert, _), (_, key) = files.certificate("one"), files.certificate("two")
    assert "does not belong to the certificate" in refused_at_start(tmp_path, config(cert, key))


def refused_at_start(folder, fields, *flags):
    """The one line that a server leaves with."""
    file = folder / "server.json"
    file.write_text(json.dumps({"port": 0, **fields}))
    done = antiphon("serve", "--config", str(file), *flags, cwd=folder)
    assert done.returncode == 1
    assert done.stderr.splitlines() == error_lines(done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_peer_that_does_not_begin_to_speak_tls_is_let_go(tmp_path, files):
    with (
        running_server(tmp_path, config(*files.certificate(), header_timeout_ms=100)) as server,
        socket.create_connection(address_of(server.url), HANG_GUARD_S) as silent,
    ):
        assert silent.recv(1) == b""


@pytest.fixture
def stalled(files):
    """Makes a peer that has shaken hands and sent half of a head."""
    with ExitStack() as ends:

        def connect(url):
            bare = ends.enter_context(socket.create_connection(address_of(url), HANG_GUARD_S))
            peer = ends.enter_context(files.client().wrap_socket(bare, server_hostname="localhost"))
            peer.sendall(head())
            return peer

        yield connect


def test_a_stop_lets_go_of_a_peer_that_stands_still_and_waits_for_the_work(tmp_path, files, stalled):
    checkpoint = ControlledCheckpoint(tmp_path / "checkpoint")
    with (
        running_server(tmp_path, config(*files.certificate())) as server,
        httpx.Client(base_url=server.url, verify=files.client(), timeout=HANG_GUARD_S) as client,
        ThreadPoolExecutor(1) as threads,
        checkpoint.held("run"),
    ):
        spoken = threads.submit(client.post, "/v1/audio/speech", json={"model": "m", "input": "x"})
        checkpoint.wait_for("run")
        peer = stalled(server.url)
        begin_stop(server)
        wait_disconnected(server, peer.getsockname()[1])
        assert server.process.poll() is None
        checkpoint.release("run")
        assert spoken.result(HANG_GUARD_S).status_code == 200
        assert server.process.wait(HANG_GUARD_S) == 0


def test_a_peer_that_never_began_to_speak_tls_does_not_hold_a_stop_up(tmp_path, files):
    with (
        running_server(tmp_path, config(*files.certificate(), header_timeout_ms=0)) as server,
        socket.create_connection(address_of(server.url), HANG_GUARD_S) as silent,
    ):
        assert server.stop() == 0
        assert silent.recv(1) == b""
