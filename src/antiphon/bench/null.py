"""The family `null`: an engine that does nothing, so that what a request costs is all the server's."""

from pathlib import Path

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import MAX_SLOTS, Capability, ModelSpec
from antiphon.vocabulary.tasks import Interface, Mode, Task, TaskRequest, TaskResult

FAMILY = "null"
TARGET = "antiphon.bench.null:NullAdapter"
"""What `antiphon serve --family` takes to know this family; it has no entry point, so that no user meets it."""

_RATE = 16_000


class NullAdapter:
    """A text model whose answer is the text that it was given; its checkpoint is any existing path."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Say what it can do; raises ConfigError for a path that does not exist."""
        if not Path(spec.path).exists():
            raise ConfigError(f"model {spec.id!r}: there is nothing at its path")
        return Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=_RATE, weight_bytes=0)

    def load(self, spec: ModelSpec) -> LoadedModel:
        """There is nothing to load."""
        del spec
        return NullModel()


class NullModel:
    """No weights."""

    def open_session(self, spec: ModelSpec | None = None) -> "NullSession":
        """Open a session."""
        del spec
        return NullSession()

    def close(self) -> None:
        """There is nothing to free."""


class NullSession:
    """Answers a text with itself, without audio: `/v1/audio/speech` has nothing to send, `/v1/tasks/run` has."""

    family = FAMILY
    task = Task.TTS
    mode = Mode.OFFLINE
    interfaces = frozenset({Interface.OFFLINE})
    sample_rate = _RATE
    channels = 1
    capacity = MAX_SLOTS

    def clone(self) -> "NullSession":
        """Open another session."""
        return NullSession()

    def prepare(self, request: TaskRequest) -> None:
        """Raise InvalidRequest where there is no text."""
        if request.text is None:
            raise InvalidRequest("text is missing", param="text")

    def run(self, request: TaskRequest) -> TaskResult:
        """Answer the text."""
        return TaskResult(text=request.text)

    def close(self) -> None:
        """There is nothing to free."""
