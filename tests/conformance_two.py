"""Two models, A and B, in the starting situations of the `two.*` cells, and what status must show of them.

It starts what a situation consists of and lets go of it; what follows from that is for the cells to say.
"""

from dataclasses import dataclass

from antiphon.testing import ControlledCheckpoint
from conformance_client import Pending, eventually
from conformance_evidence import steps
from conformance_server import Model, Server, answer_of
from conformance_standing import Snapshot, seen_together, standing

INFER, LOAD, UNLOAD, BULK = ("infer",), ("load",), ("unload",), ("bulk_unload",)
REQUEST = ["prepare", "run", "ran"]
"""What an engine announces of one request."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a model stands: its state, and the operations that hold a lease on it or wait for one, in order."""

    state: str
    leases: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()


READY, UNLOADED = Standing("ready"), Standing("unloaded")


def pool_steps(slots: int) -> list[str]:
    """What an engine announces of a load."""
    return ["load", "loaded", "open", *["clone"] * (slots - 1)]


def teardown_steps(slots: int) -> list[str]:
    """What an engine announces of a teardown."""
    return [*["destroy", "session_closed"] * slots, "destroy", "closed"]


def reconfigure(model: Model, revision: str = "v2") -> tuple[Pending, ControlledCheckpoint]:
    """Register another checkpoint under the model's id: the call, and the checkpoint."""
    checkpoint = model.replacement(revision)
    return model.register(path=str(checkpoint.path)), checkpoint


class TwoModels:
    """A and B, with the older work that a situation begins with.

    Where it begins with an operation on A, that is `manager`, and `replacement` the checkpoint that it registers.
    """

    manager: Pending
    replacement: ControlledCheckpoint

    def __init__(self, server: Server, *, a_loaded: bool = True, claimed_bytes: int | None = None) -> None:
        self.a = server.new_model(loaded=a_loaded, claimed_bytes=claimed_bytes)
        self.b = server.new_model(claimed_bytes=claimed_bytes)
        self._server = server
        self._older: dict[Model, list[tuple[str, Pending]]] = {self.a: [], self.b: []}
        self._known: dict[Model, int] = {}
        self.begin()

    def begin(self) -> "TwoModels":
        """Say that the situation is reached: `since` tells what comes after this."""
        self._known = {it: len(it.checkpoint.events()) for it in (self.a, self.b)}
        return self

    def since(self, model: Model) -> list[str]:
        """What the engine of the model's first checkpoint has announced since the situation was reached."""
        return steps(model.checkpoint)[self._known[model] :]

    def load_older(self, model: Model, count: int) -> None:
        """Have an unloaded model load, and be held at that, for `count` requests in its slots."""
        loads = len(model.checkpoint.events("load"))
        model.checkpoint.hold("load")
        for number in range(count):
            self._infer_older(model, f"older {number}")
        model.wait_listed(active_slots=count)
        model.checkpoint.wait_for("load", loads + 1)

    def run_older(self, model: Model, count: int) -> None:
        """Have a ready model run `count` requests in all, each of which is held."""
        for number in range(len(self._older[model]), count):
            text = f"older {number}"
            model.checkpoint.hold("run", text)
            self._infer_older(model, text)
            model.checkpoint.wait_for("run", text=text)

    def queue_older(self, model: Model) -> None:
        """Have one more request, "queued", wait behind those that run; nothing will hold its own run."""
        self._infer_older(model, "queued")
        model.wait_queue("infer")

    def finish(self, model: Model) -> None:
        """Let go of everything in the model, and have the older requests answered, each by the revision it came for."""
        model.unhold()
        for text, call in self._older[model]:
            answer = answer_of(call)
            assert (answer.revision, answer.text) == ("v1", text)

    def finish_first(self, model: Model, count: int) -> None:
        """Let go of the first `count` older requests that run, and have them answered."""
        for text, call in self._older[model][:count]:
            model.checkpoint.release("run", text)
            assert answer_of(call).text == text

    def wait(self, *, a: Standing, b: Standing) -> None:
        """Wait until both models stand like this; it must be how they stay."""
        eventually(self._seen, lambda seen: seen == self._wanted(a, b), f"{(a, b)}")

    def show(self, *, a: Standing, b: Standing) -> None:
        """Assert that both models stand like this now: all that the server says of them."""
        assert self._seen() == self._wanted(a, b)

    def _infer_older(self, model: Model, text: str) -> None:
        self._older[model].append((text, model.infer(text)))

    def _seen(self) -> list[Snapshot]:
        return [_of_any_slot(it) for it in seen_together(self._server, self.a, self.b)]

    def _wanted(self, *both: Standing) -> list[Snapshot]:
        slots = self._server.slots
        return [_of_any_slot(standing(it.state, slots=slots, leases=it.leases, queue=it.queue)) for it in both]


def _of_any_slot(snapshot: Snapshot) -> Snapshot:
    """How a model stands, whichever slots its leases are on; no two of them may be on one."""
    slots = [lease["slot"] for lease in snapshot["leases"]]
    assert len(set(slots)) == len(slots)
    leases = [{**lease, "slot": None if lease["slot"] is None else "any"} for lease in snapshot["leases"]]
    queue = [{name: it[name] for name in ("position", "kind", "operation")} for it in snapshot["queue"]]
    return {**snapshot, "leases": leases, "queue": queue}
