"""WebSockets on the listeners that speak HTTP: over TLS, and on a Unix socket."""

import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect, unix_connect

from server_process import HANG_GUARD_S, running_server
from tls_files import TlsFiles

PATH = "/v1/realtime?intent=transcription"


def config(folder, **fields):
    (folder / "checkpoint").mkdir(exist_ok=True)
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "asr", "lazy": True}
    return {"models": [model], **fields}


def converses(socket):
    """It says what it is, hears, answers, and closes when it is asked to."""
    assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "session.created"
    socket.send("?")
    assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "error"
    socket.close()
    with pytest.raises(ConnectionClosed):
        socket.recv(HANG_GUARD_S)
    return True


def test_one_opens_over_tls_and_is_refused_there(tmp_path):
    files = TlsFiles(tmp_path)
    cert, key = files.certificate()
    with running_server(tmp_path, config(tmp_path, tls_cert=cert.name, tls_key=key.name)) as server:
        url = server.url.replace("https", "wss")
        with connect(url + PATH, ssl=files.client()) as socket:
            assert converses(socket)
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{url}/nowhere", ssl=files.client())
        assert refused.value.response.status_code == 404
    assert "Traceback" not in server.log.read_text()


def test_one_opens_on_a_unix_socket(tmp_path):
    listeners = [{"kind": "unix", "path": "a.sock"}]
    with (
        running_server(tmp_path, config(tmp_path, listeners=listeners)),
        unix_connect(str(tmp_path / "a.sock"), f"ws://localhost{PATH}") as socket,
    ):
        assert converses(socket)
