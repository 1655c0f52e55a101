"""Servers and models for conformance tests: real processes, shared where that is safe, and controlled models in them.

It asserts nothing about the contract. A server that a test leaves hanging is killed, and the next test gets a new one.
"""

import itertools
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from antiphon.runtime.memory import SystemMemory
from antiphon.testing import ControlledCheckpoint
from conformance_cells import ISOLATIONS
from conformance_client import Client, OpenCall, Pending, eventually
from server_process import ServerProcess, running_server

SETTLE_S = 10.0
"""How long a test's last calls may take once nothing holds them. Units: seconds."""

LOAD, UNLOAD = "/v1/models/load", "/v1/models/unload"
BULK_UNLOAD, UNLOAD_ALL = "/v1/tasks/unload_models", "/v1/tasks/unload_all_models"
TASK_RUN, TASK_STREAM, TASK_BATCH = "/v1/tasks/run", "/v1/tasks/stream", "/v1/tasks/batch"


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a server is started. Every one is lazy, and allows management unless its settings say otherwise."""

    settings: Mapping[str, object] = field(default_factory=dict)
    parallel_jobs: bool = True

    def with_settings(self, settings: Mapping[str, object]) -> "Configuration":
        """The same, with more settings."""
        return Configuration({**self.settings, **settings}, self.parallel_jobs)


CONFIGURATIONS: Mapping[str, Configuration] = {
    "default": Configuration(),
    "serial": Configuration(parallel_jobs=False),
    "no_management": Configuration({"ui_management": False}),
    "short_timeout": Configuration({"busy_timeout_ms": 200}),
    "unbounded_wait": Configuration({"busy_timeout_ms": 0}),
    "residency_limit_1": Configuration({"max_loaded_models": 1}),
    "residency_limit_2": Configuration({"max_loaded_models": 2}),
    "residency_wait": Configuration({"max_loaded_models": 1, "residency_wait_ms": 20_000}),
    "load_guard": Configuration({"min_free_memory_mb": 1}),
    "idle_unload": Configuration({"idle_unload_ms": 50}),
    "memory_guard": Configuration({"min_free_memory_mb": 2**40}),
}
"""The named configurations. Those about residency, idle time and memory are for a server of the test's own."""


def most_of_the_memory() -> int:
    """So many bytes that two models which need them do not fit beside each other, and one does."""
    return SystemMemory().available_bytes() * 6 // 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What a controlled engine's text says: by which revision and session it was made, and of what."""

    revision: str
    session: str
    text: str


def answer_of(call: Pending | httpx.Response) -> Answer:
    """The engine's words in an answer of `/v1/tasks/run`, which must be 200."""
    response = call.result() if isinstance(call, Pending) else call
    assert response.status_code == 200, f"{response.status_code} {response.text}"
    return Answer(*response.json()["text"].split("|", 2))


class Model:
    """One model of a server, its id unique. `checkpoint` steers it; after a `replacement` it is still the first one."""

    def __init__(self, server: "Server", model_id: str, checkpoint: ControlledCheckpoint, fields: Mapping[str, object]):
        self.id = model_id
        self.checkpoint = checkpoint
        self.checkpoints = [checkpoint]
        self._server = server
        self._fields = dict(fields)

    def __repr__(self) -> str:
        return f"<model {self.id}>"

    def replacement(self, revision: str) -> ControlledCheckpoint:
        """A further checkpoint folder, whose answers carry `revision`; it is registered with `path=str(it.path)`."""
        checkpoint = ControlledCheckpoint(self.checkpoint.path.with_name(revision))
        self.checkpoints.append(checkpoint)
        return checkpoint

    def register(self, *, params: Mapping[str, object] | None = None, **fields: object) -> Pending:
        """Register the model or reconfigure it. What `fields` do not name is as at first; None leaves a field out."""
        given = {**self._fields, **fields}
        body = {name: value for name, value in given.items() if value is not None}
        return self._server.client.start("POST", LOAD, json={"id": self.id, **body}, params=params)

    def infer(self, text: str, **fields: object) -> Pending:
        """Run a request with this text; `fields` are further members of the body, such as busy_timeout_ms."""
        return self._server.client.start("POST", TASK_RUN, json=self._order(text, fields))

    def open_infer(self, text: str, **fields: object) -> OpenCall:
        """The same on a connection that can be cut off."""
        return self._server.client.open("POST", TASK_RUN, json=self._order(text, fields))

    def open_stream(self, text: str, **fields: object) -> OpenCall:
        """Begin a stream of events."""
        return self._server.client.open("POST", TASK_STREAM, json=self._order(text, fields))

    def open_batch(self, *texts: str, **fields: object) -> OpenCall:
        """Begin a batch; its results come as events."""
        body = {"model": self.id, "requests": [{"text": text} for text in texts], **fields}
        return self._server.client.open("POST", TASK_BATCH, json=body)

    def unload(self, *, params: Mapping[str, object] | None = None) -> Pending:
        """Unload the model."""
        return self._server.client.start("POST", UNLOAD, json={"id": self.id}, params=params)

    def listed(self) -> dict[str, object]:
        """What `GET /v1/models` says of the model."""
        return self._server.client.call("GET", f"/v1/models/{self.id}").json()

    def registration(self) -> dict[str, object]:
        """What the model is registered as, whole."""
        return self._server.client.call("GET", f"/v1/ui/models/{self.id}").json()

    def status(self) -> dict[str, object]:
        """What `GET /v1/status` says of the model."""
        models = self._server.status()["models"]
        return next(it for it in models if it["id"] == self.id)

    def wait_listed(self, **wanted: object) -> dict[str, object]:
        """Wait until `GET /v1/models` says all this: `wait_listed(active_slots=2, queued_requests=1)`."""
        return eventually(self.listed, lambda it: wanted.items() <= it.items(), f"{wanted} of {self.id}")

    def wait_state(self, state: str) -> dict[str, object]:
        """Wait until `GET /v1/status` says that the model is in this state."""
        return eventually(self.status, lambda it: it["state"] == state, f"{self.id} {state}")

    def wait_queue(self, *operations: str) -> dict[str, object]:
        """Wait until exactly these operations are queued, in this order: `wait_queue("infer", "unload")`."""
        return eventually(
            self.status, lambda it: [each["operation"] for each in it["queue"]] == list(operations), f"{operations}"
        )

    def runs(self) -> list[str | None]:
        """The texts of all runs so far, in the order in which they began, over all of the model's checkpoints."""
        begun = [event for checkpoint in self.checkpoints for event in checkpoint.events("run")]
        return [event.request for event in sorted(begun, key=lambda event: event.t)]

    def unhold(self) -> None:
        """Take back every file that holds a step up."""
        for checkpoint in self.checkpoints:
            for pattern in ("*.hold*", "*.ms*", "*.spin*", "*.gil*"):
                for file in checkpoint.path.glob(pattern):
                    file.unlink(missing_ok=True)

    def _order(self, text: str, fields: Mapping[str, object]) -> dict[str, object]:
        return {"model": self.id, "request": {"text": text}, **fields}


class Server:
    """A running server. `slots` is what `new_model` registers with; None leaves the field out."""

    _ids = itertools.count(1)

    def __init__(self, running: AbstractContextManager[ServerProcess], slots: int | None) -> None:
        self._life = ExitStack()
        self.process = self._life.enter_context(running)
        self.client = Client(self.process.url)
        self.slots = slots
        self.models: list[Model] = []
        self._killed = False

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self.process.process.poll() is None

    def new_model(self, *, loaded: bool = True, claimed_bytes: int | None = None, **fields: object) -> Model:
        """Register a controlled model with a folder of its own (revision `v1`) and have it ready, or else unloaded.

        `fields` are those of a model's configuration; slots are the server's unless they are given, None omits them.
        The model is said to need `claimed_bytes` of memory, which it does not take.
        """
        model = self.unregistered_model(**fields)
        if claimed_bytes is not None:
            model.checkpoint.set("bytes.claimed", str(claimed_bytes))
        model.register().ok()
        if not loaded:
            model.unload().ok()
        return model

    def unregistered_model(self, **fields: object) -> Model:
        """A model that the server does not know yet; steer its checkpoint, then `register()`."""
        model_id = f"m{next(self._ids)}"
        checkpoint = ControlledCheckpoint(self.process.folder / model_id / "v1")
        return self._adopt(model_id, checkpoint, fields)

    def configured_model(self, model_id: str) -> Model:
        """A model that was in the configuration of a `fresh_server`."""
        return self._adopt(model_id, ControlledCheckpoint(self.process.folder / model_id / "v1"), {})

    def bulk_unload(self, *models: Model | str) -> Pending:
        """Unload several models in one call; a string is an id."""
        ids = [it if isinstance(it, str) else it.id for it in models]
        return self.client.start("POST", BULK_UNLOAD, json={"model_ids": ids})

    def unload_all(self) -> Pending:
        """Unload every model in one call."""
        return self.client.start("POST", UNLOAD_ALL, json={})

    def status(self) -> dict[str, object]:
        """The snapshot of `GET /v1/status`."""
        return self.client.call("GET", "/v1/status").json()

    def kill(self) -> None:
        """End the process at once: for tests that leave an engine hanging."""
        self._killed = True
        self.process.process.kill()
        self.client.settle(SETTLE_S)
        self.client.close()
        with suppress(AssertionError):  # its exit code is that of a killed process
            self._life.close()

    def settle(self) -> None:
        """Leave nothing of a test behind: no held step, no call, no loaded model. A killed server has nothing left.

        Raises AssertionError when the server had to be killed for that, or when it is found dead.
        """
        if self._killed:
            return
        assert self.alive, f"the server died during the test:\n{self.process.log.read_text()[-_LAST_WORDS:]}"
        for model in self.models:
            model.unhold()
        stuck = self.client.settle(SETTLE_S)
        for model in self.models:
            model.unload()
        stuck += self.client.settle(SETTLE_S)
        self.models.clear()
        if stuck:
            self.kill()
            raise AssertionError(f"the test left what does not end, so its server was killed: {stuck}")

    def close(self) -> None:
        """Stop the server if it still runs; it must leave, or have left, with the exit code 0."""
        if not self._killed:
            self.client.close()
            self._life.close()

    def _adopt(self, model_id: str, checkpoint: ControlledCheckpoint, fields: Mapping[str, object]) -> Model:
        registration = {"family": "controlled", "path": str(checkpoint.path), "task": "tts", "slots": self.slots}
        model = Model(self, model_id, checkpoint, {**registration, **fields})
        self.models.append(model)
        return model


_LAST_WORDS = 4000
"""How much of a dead server's log is shown. Units: characters."""


def start_server(
    folder: Path,
    configuration: Configuration,
    *,
    slots: int,
    isolation: str,
    models: Mapping[str, Mapping[str, object]] | None = None,
) -> Server:
    """Start a server; `models` are controlled ones of its configuration, by id with their fields."""
    entries = []
    for model_id, fields in (models or {}).items():
        path = ControlledCheckpoint(folder / model_id / "v1").path
        entries.append({"id": model_id, "family": "controlled", "path": str(path), "task": "tts", **fields})
    settings = {"lazy_load": True, "ui_management": True, **ISOLATIONS[isolation], **configuration.settings}
    flags = ["--parallel-jobs"] if configuration.parallel_jobs else []
    running = running_server(folder, {**settings, "models": entries}, *flags)
    return Server(running, slots if configuration.parallel_jobs else None)


class SharedServers:
    """One server for each slot count, isolation and named configuration, started when it is first wanted."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._servers: dict[tuple[int, str, str], Server] = {}
        self._folders = itertools.count(1)

    def get(self, name: str, *, slots: int, isolation: str) -> Server:
        """The server that there is, or a new one if there is none or it has died."""
        key = (slots, isolation, name)
        server = self._servers.get(key)
        if server is None or not server.alive:
            server = self._servers[key] = self.start(name, slots=slots, isolation=isolation)
        return server

    def start(
        self,
        name: str,
        *,
        slots: int,
        isolation: str,
        models: Mapping[str, Mapping[str, object]] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Server:
        """Start a server that nobody shares, and that the caller closes.

        `models` are controlled ones of its configuration, by id with their fields; `settings` are added to it.
        """
        folder, configuration = self._root / f"{next(self._folders)}-{name}", CONFIGURATIONS[name]
        return start_server(
            folder,
            configuration.with_settings(settings or {}),
            slots=slots,
            isolation=isolation,
            models=models,
        )

    def close(self) -> None:
        """Stop those that are still there."""
        with ExitStack() as ends:  # each, whatever becomes of the others
            for server in self._servers.values():
                ends.callback(server.close)
