"""What calls were answered and what engines announced, as tests compare it."""

from collections.abc import Callable, Sequence

import httpx

from antiphon.testing import ControlledCheckpoint
from conformance_client import Pending
from conformance_server import Answer, Model, answer_of


def answers(calls: Sequence[Pending]) -> list[Answer]:
    """What the engine said to each call; all must be 200."""
    return [answer_of(call) for call in calls]


def said(calls: Sequence[Pending]) -> list[tuple[str, str]]:
    """By which revision each call was answered, and its text."""
    return [(it.revision, it.text) for it in answers(calls)]


def at_work(model: Model, revision: str = "v1") -> None:
    """Assert that the model answers, by this revision."""
    assert said([model.infer("at work")]) == [(revision, "at work")]


def error_of(call: Pending | httpx.Response) -> dict[str, object]:
    """The error that a call was answered with; a 503 must say when to come back."""
    answer = call.result() if isinstance(call, Pending) else call
    assert answer.status_code >= 400, answer.text
    assert answer.status_code != 503 or int(answer.headers["retry-after"]) >= 1
    return answer.json()["error"]


def refusal(call: Pending) -> tuple[int, str | None, str | None]:
    """Status, code and param of an answer that is an error."""
    error = error_of(call)
    return call.result().status_code, error["code"], error["param"]


def loaded(model: Model) -> dict[str, object]:
    """The whole answer to a call that has loaded the model."""
    return {"id": model.id, "loaded": True}


def assert_unloaded(model: Model, call: Pending, *, freed: bool = True) -> None:
    """Assert the whole answer to an unload; `freed` says whether there was anything in memory to be measured."""
    answer = call.ok()
    memory = answer.pop("memory")
    assert answer == {"id": model.id, "loaded": False}
    assert (memory is not None) is freed
    if freed:
        assert set(memory) == {"before_bytes", "after_bytes", "returned_bytes"}


def wait_that_ends(claim: Callable[[int], Pending]) -> None:
    """Have a claim wait and be refused once its time is over; `claim` makes it, given its bound in milliseconds.

    It is refused at once where all that occupies the model is older than that, as it is on a slow machine; then it is
    made again with a longer bound.
    """
    for bound_ms in (200, 800, 3200, 12_800):
        refused = claim(bound_ms)
        assert refusal(refused) == (503, "server_busy", None)
        if "came free within" in error_of(refused)["message"]:
            return
    raise AssertionError("no claim was let wait")


def steps(checkpoint: ControlledCheckpoint, *wanted: str) -> list[str]:
    """What was announced in a folder, in order: all steps, or those named."""
    return [event.step for event in checkpoint.events() if not wanted or event.step in wanted]


def first(checkpoint: ControlledCheckpoint, step: str) -> float:
    """When a step was announced for the first time; monotonic seconds, which compare between checkpoints."""
    return checkpoint.events(step)[0].t


def last(checkpoint: ControlledCheckpoint, step: str) -> float:
    """When a step was announced for the last time."""
    return checkpoint.events(step)[-1].t


def nothing_left_open(checkpoint: ControlledCheckpoint) -> None:
    """Assert that all weights that were loaded from a folder are gone, and that no session outlived its own."""
    weights = 0
    for step in steps(checkpoint, "loaded", "session_closed", "closed"):
        match step:
            case "loaded":
                weights += 1
            case "session_closed":
                assert weights, "weights went before their sessions"
            case _:
                weights -= 1
    assert weights == 0
