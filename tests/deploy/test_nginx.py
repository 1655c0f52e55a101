"""The site for nginx: real nginx in front of a real server lets through, as it comes, what must not wait."""

import os
import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

from controlled_server import SPEECH, ControlledServer, controlled_server
from deploy_files import DEPLOY
from leaving_client import asking_for_speech
from live_client import LIVE, live_client
from server_process import HANG_GUARD_S
from websocket_clients import connect

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
SITE = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
TENTH = bytes(2 * 1600)
"""A tenth of a second of silence at 16 kHz, for which the engine answers a number."""

MAIN = """
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Proxied:
    """A server, and the address of nginx in front of it."""

    server: ControlledServer
    url: str


@contextmanager
def nginx(folder, upstream):
    """Serve the site without TLS on a free port, in front of `upstream`; yields its address."""
    with socket.socket() as kept:  # nobody else is given the port before nginx has it
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        site = re.sub(r"ssl_\S+ +\S+;", "", SITE).replace("listen 443 ssl", f"listen 127.0.0.1:{port} reuseport")
        (folder / "site.conf").write_text(site.replace("127.0.0.1:8080;", f"{upstream};"), encoding="utf-8")
        main = folder / "main.conf"
        user = "" if os.getuid() else "user root;"
        main.write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
        command = [NGINX, "-p", str(folder), "-c", str(main)]
        subprocess.run(command, check=True, capture_output=True, timeout=HANG_GUARD_S)  # then it listens
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            subprocess.run([*command, "-s", "stop"], check=True, capture_output=True, timeout=HANG_GUARD_S)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    assert NGINX is not None, "nginx is not installed"
    folder = tmp_path_factory.mktemp("nginx")
    with controlled_server(tmp_path_factory.mktemp("behind"), parallel=True) as server:
        server.checkpoints["asr"].set("live.echo")
        with nginx(folder, server.process.url.removeprefix("http://")) as url:
            yield Proxied(server, url)


def test_an_event_comes_through_while_the_engine_still_works_on_the_next(proxied):
    body = {"model": "tts", "input": "held", "stream_format": "sse"}
    with (
        proxied.server.steered("stream.hold.held") as checkpoint,
        httpx.stream("POST", proxied.url + SPEECH, json=body, timeout=HANG_GUARD_S) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith('data: {"type":"speech.audio.delta"')
        checkpoint.release("stream", "held")
        assert [line for line in lines if line][-1] == "data: [DONE]"


def test_words_come_through_while_the_client_still_speaks(proxied):
    with live_client(proxied.url, model="asr") as client:
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "1 "}
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "2 "}
        client.end()
        assert client.event()["type"] == "transcript.text.done"


def test_a_websocket_is_let_through(proxied):
    url = f"{proxied.url.replace('http', 'ws')}{LIVE}?model=asr"
    with connect(url) as client:
        client.send(TENTH)
        assert '"delta":"1 "' in client.recv(HANG_GUARD_S)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://speech.example.org", 200),
        ("http://speech.example.org.elsewhere.example", 403),
        ("https://speech.example.org", 403),
        ("http://elsewhere.example", 403),
    ],
)
def test_the_site_may_call_it_from_its_own_pages_and_no_other_may(proxied, origin, status):
    headers = {"host": "speech.example.org", "origin": origin}

    answer = httpx.post(
        proxied.url + SPEECH, json={"model": "tts", "input": "own"}, headers=headers, timeout=HANG_GUARD_S
    )

    assert answer.status_code == status


def test_an_upload_larger_than_nginx_takes_by_itself_is_let_through(proxied):
    upload = {"file": ("a.wav", bytes(2 * 1024 * 1024))}

    answer = httpx.post(
        f"{proxied.url}/v1/audio/transcriptions", data={"model": "asr"}, files=upload, timeout=HANG_GUARD_S
    )

    assert answer.status_code == 400  # the server has read it, and found no audio in it
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_client_that_leaves_ends_its_run(proxied):
    with proxied.server.steered("run.hold.left") as checkpoint, proxied.server.steered("run.cancellable"):
        with asking_for_speech(proxied.url, {"model": "tts", "input": "left"}):
            checkpoint.wait_for("run", text="left")
        checkpoint.wait_for("ran", text="left")  # the hold is still there: only the client's leaving ended it


def test_the_site_says_what_must_not_be_left_to_nginx():
    said = dict(re.findall(r"^ +(\w+) +(\S[^;{]*);", SITE, re.MULTILINE))

    assert said["client_max_body_size"] == "0"
    assert said["proxy_buffering"] == said["proxy_request_buffering"] == "off"
    assert said["proxy_http_version"] == "1.1"
    assert said["proxy_read_timeout"] == "1h"
    assert "proxy_set_header Host localhost;" in SITE
