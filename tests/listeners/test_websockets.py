"""WebSockets on the listeners that speak HTTP: over TLS, and on a Unix socket."""

import asyncio
import json
import socket
import ssl

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from live_stage import handshake
from server_process import HANG_GUARD_S, running_server
from tls_files import TlsFiles
from websocket_clients import connect_over_tls, unix_connect

PATH = "/v1/realtime?intent=transcription"


def config(folder, **fields):
    (folder / "checkpoint").mkdir(exist_ok=True)
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "asr", "lazy": True}
    return {"models": [model], **fields}


async def converses_over_tls(url, context):
    """It says what it is, hears, answers, and closes when it is asked to."""
    async with asyncio.timeout(HANG_GUARD_S), connect_over_tls(url, context) as talk:
        assert json.loads(await talk.recv())["type"] == "session.created"
        await talk.send("?")
        assert json.loads(await talk.recv())["type"] == "error"
        await talk.close()
        with pytest.raises(ConnectionClosed):
            await talk.recv()


async def refused_over_tls(url, context):
    """The status of the refusal."""
    with pytest.raises(InvalidStatus) as refused:
        await connect_over_tls(url, context)
    return refused.value.response.status_code


def test_one_opens_over_tls_and_is_refused_there(tmp_path):
    files = TlsFiles(tmp_path)
    cert, key = files.certificate()
    with running_server(tmp_path, config(tmp_path, tls_cert=cert.name, tls_key=key.name)) as server:
        url = server.url.replace("https", "wss")
        asyncio.run(converses_over_tls(url + PATH, files.client()))
        assert asyncio.run(refused_over_tls(f"{url}/nowhere", files.client())) == 404
    assert "Traceback" not in server.log.read_text()


def ask_with_finished(peer, context, request):
    """Shake hands over TLS and send the request in the packet of the last word of that; the answer's beginning."""
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send, server_hostname="localhost")

    def done(step, *arguments):
        while True:
            try:
                return step(*arguments)
            except ssl.SSLWantReadError:
                peer.sendall(to_send.read())
                piece = peer.recv(65536)
                assert piece, "the server has closed the connection"
                received.write(piece)

    done(tls.do_handshake)
    assert to_send.pending
    done(tls.write, request)
    return done(tls.read, 65536)


def test_one_opens_that_was_asked_for_with_the_end_of_the_tls_handshake(tmp_path):
    files = TlsFiles(tmp_path)
    cert, key = files.certificate()
    context = files.client()
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # there the client has the last word
    with running_server(tmp_path, config(tmp_path, tls_cert=cert.name, tls_key=key.name)) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), HANG_GUARD_S) as peer:
            asked = handshake(PATH).replace(b"Host: here", b"Host: localhost")
            assert ask_with_finished(peer, context, asked).startswith(b"HTTP/1.1 101 ")


def test_one_opens_on_a_unix_socket(tmp_path):
    listeners = [{"kind": "unix", "path": "a.sock"}]
    with (
        running_server(tmp_path, config(tmp_path, listeners=listeners)),
        unix_connect(str(tmp_path / "a.sock"), f"ws://localhost{PATH}") as talk,
    ):
        assert json.loads(talk.recv(HANG_GUARD_S))["type"] == "session.created"
        talk.send("?")
        assert json.loads(talk.recv(HANG_GUARD_S))["type"] == "error"
        talk.close()
        with pytest.raises(ConnectionClosed):
            talk.recv(HANG_GUARD_S)
