"""`antiphon status` as its user meets it, on real servers."""

import json
import os
import pty
import signal
import socket
import subprocess
import threading
from contextlib import closing, contextmanager

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from controlled_server import controlled_server
from server_process import ANTIPHON, HANG_GUARD_S, running_server
from tls_files import TlsFiles

KEY = "a-key-of-its-own"


def status(*arguments, **env):
    """Run the command once, in this process."""
    return CliRunner().invoke(app, ["status", *arguments], env=env)


def the_line(done):
    """The one line that a command failed with."""
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("antiphon: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("antiphon: ").rstrip()


@contextmanager
def watching(url, *flags, stdout=subprocess.PIPE):
    """The command as a process that looks ten times a second; a test that hangs has it killed."""
    command = [ANTIPHON, "status", "--watch", "--interval", "0.1", "--url", url, *flags]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment) as process:
        hang_guard = threading.Timer(HANG_GUARD_S, process.kill)
        hang_guard.start()
        try:
            yield process
        finally:
            hang_guard.cancel()
            process.kill()


def read_until(lines, *fragments):
    """The first line that has all the fragments."""
    seen = []
    for line in lines:
        seen.append(line)
        if all(fragment in line for fragment in fragments):
            return line
    raise AssertionError(f"no line with {fragments}:\n{''.join(seen)}")


def interrupted(process):
    """Its exit code after Ctrl-C, and what it said in the end."""
    process.send_signal(signal.SIGINT)
    return process.wait(HANG_GUARD_S), process.stderr.read()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with controlled_server(tmp_path_factory.mktemp("status"), parallel=True, ui_management=True) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that wants a key and speaks HTTPS; with it the file of whom to trust."""
    folder = tmp_path_factory.mktemp("guarded")
    files = TlsFiles(folder)
    cert, key = files.certificate()
    with running_server(folder, {"api_keys": [KEY], "tls_cert": str(cert), "tls_key": str(key)}) as server:
        yield server.url, str(files.authority())


def test_the_watch_shows_runs_the_queue_with_its_barrier_and_the_end_of_all(server):
    with server.steered("run.hold") as checkpoint, watching(server.process.url) as process:
        waiting = [server.later("first"), server.later("second")]
        read_until(process.stdout, "tts", "[0 infer ", "[1 infer ")
        waiting.append(server.threads.submit(server.client.post, "/v1/models/unload", json={"id": "tts"}))
        read_until(process.stdout, "tts", "| 1 unload ")
        waiting.append(server.later("third"))
        read_until(process.stdout, "tts", "[0 infer ", "[1 infer ", "| 1 unload ", "|, 2 infer ")
        checkpoint.release("run")
        read_until(process.stdout, "tts", "ready", "[0 free] [1 free]")
        assert interrupted(process) == (0, "")
    assert [done.result(HANG_GUARD_S).status_code for done in waiting] == [200] * 4


def test_a_failed_load_is_shown_with_its_error(server):
    with server.steered("load.fail", model_id="asr"):
        assert server.transcribe().status_code == 500

    done = status("--url", server.process.url)

    assert done.exit_code == 0
    row = next(line for line in done.stdout.splitlines() if line.strip().startswith("asr"))
    assert "unloaded" in row
    assert "load" in row.partition("[1 free]")[2]


def test_json_is_what_the_server_says_on_one_line(server):
    done = status("--json", "--url", server.process.url)

    assert done.stdout.count("\n") == 1
    assert [model["id"] for model in json.loads(done.stdout)["models"]] == ["tts", "asr", "org/tts one"]


def test_a_lost_server_is_told_of_once_and_found_again_when_it_comes_back(tmp_path):
    with running_server(tmp_path, {}) as first, watching(first.url) as process:
        read_until(process.stdout, "models: 0,")
        assert first.stop() == 0
        assert "; trying again" in process.stderr.readline()
        port = int(first.url.rpartition(":")[2])
        with controlled_server(tmp_path / "again", parallel=False, port=port):
            read_until(process.stdout, "models: 3,")
            assert interrupted(process) == (0, "")


def test_on_a_terminal_the_table_changes_in_its_place_and_leaves_the_cursor(server):
    ours, theirs = pty.openpty()
    with watching(server.process.url, stdout=theirs) as process, os.fdopen(ours, "rb", buffering=0) as terminal:
        os.close(theirs)
        with server.steered("run.hold", model_id="org/tts one"):
            seen = b""
            while b"[0 free]" not in seen:
                seen += terminal.read(4096)
            running = server.later("x", model="org/tts one")
            while b"[0 infer " not in seen:
                seen += terminal.read(4096)
        process.send_signal(signal.SIGINT)
        try:
            while piece := terminal.read(4096):
                seen += piece
        except OSError:  # so a terminal ends whose other side is closed
            pass
        assert process.wait(HANG_GUARD_S) == 0
    assert running.result(HANG_GUARD_S).status_code == 200
    assert b"\x1b[1A" in seen  # up again, over the table
    assert seen.rstrip().endswith(b"\x1b[?25h")  # the cursor is there again


def test_where_nobody_listens_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

    assert the_line(status("--url", url)) == f"{url}: Connection refused"


def test_what_speaks_no_http_is_one_line():
    def answer():
        peer, _ = taken.accept()
        with closing(peer):
            peer.recv(4096)
            peer.sendall(b"220 mail.example.org ESMTP\r\n")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        thread = threading.Thread(target=answer)
        thread.start()
        assert the_line(status("--url", url)) == f"{url}: no HTTP is spoken there (BadStatusLine)"
        thread.join()


def test_an_address_under_which_there_is_no_such_route_is_one_line(server):
    assert the_line(status("--url", f"{server.process.url}/elsewhere")).startswith(
        f"{server.process.url}/elsewhere: 404: "
    )


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://a:b@c", "http://a:99999", "http://a/b c", "http://ü/ü"],
)
def test_an_address_that_is_none_is_one_line(url):
    assert the_line(status("--url", url)).startswith("wanted an address like http://127.0.0.1:8080; found ")


def test_a_name_that_cannot_be_one_is_one_line():
    assert "label" in the_line(status("--url", f"http://{'a' * 64}"))


def test_a_server_with_keys_refuses_in_one_line(guarded):
    url, authority = guarded

    assert the_line(status("--url", url, SSL_CERT_FILE=authority)).startswith(f"{url}: 401: ")


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (["--api-key", KEY], {}),
        ([], {"ANTIPHON_API_KEY": KEY}),
        ([], {"ANTIPHON_API_KEYS": f"{KEY},another"}),
        (["--api-key", KEY], {"ANTIPHON_API_KEY": "not this one"}),
    ],
)
def test_a_key_comes_from_the_flag_or_the_environment(guarded, flags, env):
    url, authority = guarded

    assert status("--url", url, *flags, SSL_CERT_FILE=authority, **env).exit_code == 0


def test_a_certificate_that_is_not_trusted_is_one_line(guarded):
    url, _ = guarded

    assert "certificate verify failed" in the_line(status("--url", url, "--api-key", KEY))


def test_a_key_that_no_header_can_carry_is_not_repeated():
    assert the_line(status("--api-key", "geheim ü")) == "wanted an API key of visible ASCII characters"


def test_the_address_may_come_from_the_environment(server):
    done = status(ANTIPHON_URL=server.process.url)

    assert done.stdout.startswith(f"{server.process.url}  models: 3")
