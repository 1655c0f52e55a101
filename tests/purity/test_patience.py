"""No test waits for a real server as long only as some library thinks right: a machine that is shared takes longer."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLIENTS = {"httpx." + name for name in ("get", "post", "put", "delete", "request", "stream", "Client")} | {
    "openai.OpenAI",
    "urllib.request.urlopen",
    "socket.create_connection",
}


def hasty(source):
    """Its calls of clients that say nothing of time, and its imports of clients that `websocket_clients` stands for."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in {"websockets.sync.client", "websockets.asyncio.client"}:
            yield f"line {node.lineno}: {node.module}"
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in CLIENTS:
            continue
        positional = ast.unparse(node.func) == "socket.create_connection" and len(node.args) == 2
        if not positional and "timeout" not in {it.arg for it in node.keywords}:
            yield f"line {node.lineno}: {ast.unparse(node.func)}"


def test_every_client_says_how_long_it_waits():
    files = [it for it in TESTS.rglob("*.py") if it.name != "websocket_clients.py"]
    found = {str(it.relative_to(TESTS)): list(hasty(it.read_text())) for it in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source", ["httpx.get(url)", "socket.create_connection(there)", "from websockets.sync.client import connect"]
)
def test_one_that_does_not_is_found(source):
    assert len(list(hasty(source))) == 1
