"""What came from a server, a model or a file steers no terminal, whichever command prints it."""

import ast
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

import antiphon.cli
from antiphon.cli import app
from antiphon.vocabulary.printable import printable, without_controls

ESCAPE = "\x1b]0;title\x07\x1b[31m\x9b5m\u202e"
SHOWN = r"\u001b]0;title\u0007\u001b[31m\u009b5m\u202e"


class _Hostile(BaseHTTPRequestHandler):
    """Says nothing but escapes, as an error or as a status."""

    is_status = False

    def do_GET(self) -> None:
        model = {"id": ESCAPE, "state": ESCAPE, "slots": 1, "task": ESCAPE, "last_error": ESCAPE}
        content = {"models": [model], "data": [model]} if self.is_status else {"error": {"message": ESCAPE}}
        body = json.dumps(content).encode()
        self.send_response(200 if self.is_status else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing among the results of the tests."""


@pytest.fixture
def hostile_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("is_status", [False, True], ids=["error", "status"])
def test_what_a_server_says_steers_no_terminal(hostile_url, monkeypatch, flags, is_status):
    monkeypatch.setattr(_Hostile, "is_status", is_status)

    done = CliRunner().invoke(app, ["status", "--url", hostile_url, *flags])
    shown = done.stdout if is_status else done.stderr
    assert SHOWN in shown
    assert all(sign.isprintable() or sign == "\n" for sign in shown)
    if is_status and flags:
        assert json.loads(shown)["models"][0]["id"] == ESCAPE


def test_a_name_in_a_file_steers_no_terminal(tmp_path):
    (tmp_path / "server.json").write_text(json.dumps({ESCAPE: 1}))

    done = CliRunner().invoke(app, ["serve", "--config", str(tmp_path / "server.json")])
    assert done.exit_code == 1
    assert all(sign.isprintable() or sign == "\n" for sign in done.stderr)


def test_printable_text_is_shown_as_it_is():
    assert printable("Grüße, 世界") == "Grüße, 世界"
    assert printable(ESCAPE) == SHOWN
    assert without_controls(f"a\tb\n{ESCAPE}\u3000") == "a\tb\n" + SHOWN.replace(r"\u202e", "\u202e\u3000")


def test_every_command_prints_through_one_module():
    (folder,) = antiphon.cli.__path__
    direct = [
        f"{file.name}:{node.lineno}"
        for file in sorted(Path(folder).glob("*.py"))
        if file.name != "terminal.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "typer.echo", "typer.secho", "click.echo"}
    ]
    assert direct == []
