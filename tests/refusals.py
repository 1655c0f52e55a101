"""What holds of every refusal over HTTP (rule G of the bug-report cases), as one assertion."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from server_process import ServerProcess

_OUR_PLACES = (sys.prefix, str(Path(__file__).parents[1]), tempfile.gettempdir(), str(Path.home() / ".local"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of a refused request, as its body says it."""

    message: str
    type: str
    param: str | None
    code: str | None


def assert_refused(answer: httpx.Response, status: int, param: str | None = None, code: str | None = None) -> Refusal:
    """The answer is an error in OpenAI's shape, of this status, and it tells nothing of the server's insides."""
    assert answer.status_code == status, answer.text
    refusal = refusal_in(answer)
    assert (refusal.param, refusal.code) == (param, code), answer.text
    return refusal


def refusal_in(answer: httpx.Response) -> Refusal:
    """The error of an answer, which must be in OpenAI's shape, whatever it is, and tell nothing of the server."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    refusal = Refusal(**body["error"])
    assert refusal.message
    assert "\n" not in refusal.message
    assert "Traceback" not in answer.text
    for place in _OUR_PLACES:
        assert place not in answer.text
    if answer.status_code == 503:
        assert int(answer.headers["retry-after"]) >= 1
    return refusal


def assert_unharmed(server: ServerProcess, client: httpx.Client, good: Callable[[], httpx.Response]) -> None:
    """Every slot is free, nothing waits, no temporary file is left, and the next good request is served."""
    for model in client.get("/v1/models").json()["data"]:
        assert (model.get("active_slots", 0), model.get("queued_requests", 0)) == (0, 0), model
    assert list(server.temp.iterdir()) == []
    answer = good()
    assert answer.status_code == 200, answer.text
