"""One fresh start of a server with the model under validation, and what is asked of it besides questions."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from antiphon.validation.client import Answer, ask
from antiphon.validation.errors import NoAnswer
from antiphon.validation.server import Opener, open_process
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import ClaimKind, ModelState
from antiphon.vocabulary.tasks import Mode


class Entry(StrEnum):
    """The ids under which the one model is registered: each has a first lazy load of its own."""

    MODEL = "model"
    TARGETED = "targeted"
    BULK = "bulk"


@dataclass(frozen=True, slots=True)
class Subject:
    """The model under validation; `families` are adapters beyond the installed ones, as "module:Class"."""

    spec: ModelSpec
    families: tuple[str, ...] = ()
    opener: Opener = open_process


@dataclass(frozen=True, slots=True)
class Standing:
    """How an entry stood at one moment, by the server's own status."""

    state: ModelState
    loaded: bool
    active_slots: int
    queued_requests: int
    queued_managers: int

    @property
    def is_quiet(self) -> bool:
        """Whether nobody holds a slot or waits."""
        return not (self.active_slots or self.queued_requests or self.queued_managers)


@dataclass(frozen=True, slots=True)
class Site:
    """A server that listens. Every method raises NoAnswer where it does not answer."""

    url: str
    pid: int
    slots: int

    def standing(self, entry: Entry) -> Standing:
        """Ask `/v1/status` for an entry."""
        told = _expected(ask(self.url, "/v1/status"))
        models = told["models"]
        assert isinstance(models, list)
        model = next(it for it in models if it["id"] == entry)
        managers = [waiter for waiter in model["queue"] if waiter["kind"] == ClaimKind.MANAGEMENT]
        return Standing(
            ModelState(model["state"]), model["loaded"], model["active_slots"], model["queued_requests"], len(managers)
        )

    def load(self, entry: Entry) -> Mapping[str, object]:
        """Load an entry."""
        return _expected(ask(self.url, "/v1/models/load", {"id": entry}))

    def unload(self, entry: Entry) -> Mapping[str, object]:
        """Unload an entry."""
        return _expected(ask(self.url, "/v1/models/unload", {"id": entry}))

    def unload_many(self, *entries: Entry) -> Mapping[str, object]:
        """Unload several entries in one call."""
        return _expected(ask(self.url, "/v1/tasks/unload_models", {"model_ids": list(entries)}))


@contextmanager
def fresh_start(subject: Subject, mode: Mode, slots: int) -> Iterator[Site]:
    """Start a server with the model on every entry, none loaded; it ends with the block. Raises BenchError."""
    with TemporaryDirectory(prefix="antiphon-validation-") as folder:
        config = Path(folder) / "server.json"
        config.write_text(json.dumps(_settings(subject.spec, mode, slots)), encoding="utf-8")
        with subject.opener(config, subject.families) as opened:
            yield Site(opened.url, opened.pid, slots)


def _settings(spec: ModelSpec, mode: Mode, slots: int) -> dict[str, object]:
    """The models root is the folder of the file, so that nothing that is learned outlives the start."""
    model: dict[str, object] = {
        "family": spec.family,
        "path": spec.path,
        "task": str(spec.task),
        "mode": str(mode),
        "slots": slots,
        "threads": spec.threads_setting,
        "load_options": dict(spec.load_options),
        "session_options": dict(spec.session_options),
    }
    return {
        "port": 0,
        "device": spec.device,
        "isolation": str(spec.isolation),
        "lazy_load": True,
        "ui_management": True,
        "busy_timeout_ms": 0,
        "models_root": ".",
        "models": [{"id": str(entry), **model} for entry in Entry],
    }


def _expected(answer: Answer) -> Mapping[str, object]:
    if answer.status != 200:
        raise NoAnswer(f"HTTP {answer.status}: {answer.body[:300].decode('utf-8', 'replace')}")
    return answer.json()
