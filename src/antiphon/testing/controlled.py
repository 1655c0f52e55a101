"""A whole engine without a model: the adapter of family `controlled`, steered by files in its checkpoint folder.

It offers every task, offline, in batches and streaming, and refuses a runtime that breaks the rules of a session.
docs/testing.md lists the files.
"""

import mmap
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum, auto
from itertools import count
from pathlib import Path

from antiphon.testing.answers import RATE, TONE_FRAMES, echo, pieces_of, result_of, tone
from antiphon.testing.steering import Steering
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import ConfigError, InvalidRequest, InvariantError
from antiphon.vocabulary.spec import Capability, ModelSpec, OptionSpec, SessionFacts
from antiphon.vocabulary.tasks import Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult

FAMILY = "controlled"
DEFAULT_CAPACITY = 4
PAGE_BYTES = 4096


class ControlledAdapter:
    """The family `controlled`; its checkpoint is any folder."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Read the files; raises ConfigError for a missing folder and for a session's capacity that is no integer."""
        steering = _steering(spec)
        steering.obey("inspect")
        _capacity(spec, steering)
        return Capability(
            frozenset(Task),
            frozenset(Mode),
            sample_rate=RATE,
            weight_bytes=_claimed_bytes(steering),
            options=tuple(map(_option, (steering.read("options") or "").split())),
            voices=tuple((steering.read("voices") or "").split()),
            languages=tuple((steering.read("languages") or "").split()),
            holds_gil=steering.read("holds_gil") is not None,
            clones=steering.read("clones") is not None,
            auto_threads=steering.read("fixed_threads") is None,
        )

    def convert(self, folder: Path) -> None:
        """Write `model.converted`, which is `model.bin` backwards."""
        Steering(folder).obey("convert")
        (folder / "model.converted").write_bytes((folder / "model.bin").read_bytes()[::-1])

    def load(self, spec: ModelSpec) -> "ControlledModel":
        """Read `revision`, do what the load's files say and take the memory that `bytes` names."""
        return ControlledModel(spec, _steering(spec))


class ControlledModel:
    """Weights that are nothing but memory; they refuse to go before their sessions are closed."""

    def __init__(self, spec: ModelSpec, steering: Steering) -> None:
        self._spec = spec
        self._steering = steering
        self._open_ids: set[str] = set()
        self._clones = count(1)
        self.revision = steering.read("revision") or Path(spec.path).name
        self.tone = tone(self.revision)
        self.step("load")
        self._weights = _allocate(_weight_bytes(steering))
        self.announce("loaded")

    def open_session(self, spec: ModelSpec | None = None) -> "ControlledSession | None":
        """Open a primary, or a probe as `spec` has it; None while the file `session.null` is there."""
        opened_as = spec or self._spec
        session_id = self._next_id()
        self.step("open", session_id)
        if self._steering.read("session.null") is not None:
            return None
        task, mode, capacity = opened_as.task, opened_as.mode, _capacity(opened_as, self._steering)
        facts = SessionFacts(FAMILY, task, mode, frozenset(Interface), RATE, channels=1, capacity=capacity)
        return self._opened(session_id, facts)

    def clone(self, facts: SessionFacts) -> "ControlledSession | None":
        """Open a session with the same facts, except for the one that the file `clone.differs` names."""
        session_id = self._next_id()
        self.step("clone", session_id, nth=next(self._clones))
        if self._steering.read("clone.null") is not None:
            return None
        return self._opened(session_id, _different(facts, self._steering.read("clone.differs")))

    def close(self) -> None:
        """Give the memory back, also when `destroy.fail` makes this raise; InvariantError while sessions are open."""
        if self._open_ids:
            raise InvariantError(f"the weights are closed before the sessions {sorted(self._open_ids)}")
        try:
            self.step("destroy")
        finally:
            self._weights.close()
        self.announce("closed")

    def forget(self, session_id: str) -> None:
        """Stop waiting for a session's close."""
        self._open_ids.remove(session_id)

    def announce(self, step: str, session: str | None = None, request: TaskRequest | None = None) -> None:
        """Write a step into `events.jsonl`."""
        self._steering.announce(step, self.revision, session, request)

    def step(
        self, step: str, session: str | None = None, request: TaskRequest | None = None, nth: int | None = None
    ) -> None:
        """Announce a step, then do to it what the files say."""
        self.announce(step, session, request)
        self._steering.obey(step, request, nth)

    def echo_frames(self) -> int:
        """How many frames of live audio get an answer of their own; 0 without the file `live.echo`."""
        text = self._steering.read("live.echo")
        return 0 if text is None else int(text or TONE_FRAMES)

    def abandoned(self, request: TaskRequest) -> bool:
        """Whether the request's client has left and the engine is told to heed that."""
        return self._steering.abandoned(request)

    def _next_id(self) -> str:
        return f"s{self._steering.take_ticket()}"

    def _opened(self, session_id: str, facts: SessionFacts) -> "ControlledSession":
        self._open_ids.add(session_id)
        return ControlledSession(self, session_id, facts)


class _Condition(Enum):
    """What a session may be asked next: anything, `reset` alone, nothing."""

    FIT = auto()
    STREAMED = auto()
    CLOSED = auto()


class ControlledSession:
    """One slot's session.

    It raises InvariantError where a runtime breaks the rules: two calls at once, a call after the close, a request
    after a stream without `reset`.
    """

    def __init__(self, model: ControlledModel, session_id: str, facts: SessionFacts) -> None:
        self.session_id = session_id
        self.family = facts.family
        self.task = facts.task
        self.mode = facts.mode
        self.interfaces = facts.interfaces
        self.sample_rate = facts.sample_rate
        self.channels = facts.channels
        self.capacity = facts.capacity
        self._facts = facts
        self._model = model
        self._call = threading.Lock()
        self._condition = _Condition.FIT

    def clone(self) -> "ControlledSession | None":
        """Open another session over the same weights; None while the file `clone.null` is there."""
        with self._alone():
            return self._model.clone(self._facts)

    def prepare(self, request: TaskRequest) -> None:
        """Check the request; raises InvalidRequest without a text where the task needs one."""
        with self._alone():
            self._refuse_unreset()
            self._model.step("prepare", self.session_id, request)
            if self.task in (Task.TTS, Task.ALIGN) and not request.text:
                raise InvalidRequest("a text is needed", param="input" if self.task is Task.TTS else "text")

    def run(self, request: TaskRequest) -> TaskResult:
        """Answer `revision|session|input` and what the task adds; raises InvalidRequest without an audio to hear."""
        with self._alone(), self._running(request):
            self._refuse_unreset()
            return self._result(request)

    def run_batch(self, requests: Sequence[TaskRequest]) -> Iterator[tuple[int, TaskResult]]:
        """Answer the requests in their order, each a run of its own."""
        with self._alone():
            self._refuse_unreset()
            for index, request in enumerate(requests):
                with self._running(request):
                    result = self._result(request)
                yield index, result

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Generator[StreamEvent, None, None]:
        """Answer in three pieces and the end; the step `stream` lies between the first piece and the second.

        Live audio is read to its end first; where there is the file `live.echo` it is answered while it is read.
        """
        with self._alone():
            self._refuse_unreset()
            self._condition = _Condition.STREAMED
            with self._running(request):
                if audio is not None and (every := self._model.echo_frames()):
                    yield from echo(audio, every)
                    return
                heard = sum(chunk.pcm.frames for chunk in audio or ())
                for number, piece in enumerate(pieces_of(self._result(request, heard))):
                    if number == 1:
                        self._model.step("stream", self.session_id, request)
                    if self._model.abandoned(request):
                        return
                    yield piece

    def reset(self) -> None:
        """Be fit for the next request, also when `reset.fail` makes this raise."""
        with self._alone():
            self._condition = _Condition.FIT
            self._model.step("reset", self.session_id)

    def close(self) -> None:
        """End this session, also when `destroy.fail` makes this raise."""
        with self._alone():
            self._condition = _Condition.CLOSED
            self._model.forget(self.session_id)
            self._model.step("destroy", self.session_id)
            self._model.announce("session_closed", self.session_id)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a second call at the same time, and any after the close."""
        if not self._call.acquire(blocking=False):
            raise InvariantError(f"two calls at once on the session {self.session_id}")
        try:
            if self._condition is _Condition.CLOSED:
                raise InvariantError(f"a call on the closed session {self.session_id}")
            yield
        finally:
            self._call.release()

    @contextmanager
    def _running(self, request: TaskRequest) -> Iterator[None]:
        """One run from `run` to `ran`, which is announced however the run ends."""
        try:
            self._model.step("run", self.session_id, request)
            yield
        finally:
            self._model.announce("ran", self.session_id, request)

    def _refuse_unreset(self) -> None:
        if self._condition is _Condition.STREAMED:
            raise InvariantError(f"the session {self.session_id} was not reset after a stream")

    def _result(self, request: TaskRequest, heard: int = 0) -> TaskResult:
        if self.task is not Task.TTS and request.audio is None and not request.live:
            raise InvalidRequest("an audio is needed", param="audio")
        heard = request.audio.frames if request.audio else heard
        text = f"{self._model.revision}|{self.session_id}|{request.text or ''}"
        return result_of(self.task, text, request, self._model.tone, heard)


def _steering(spec: ModelSpec) -> Steering:
    """The steering of a spec's folder; raises ConfigError when there is none."""
    folder = Path(spec.path)
    if not folder.is_dir():
        raise ConfigError(f"the model {spec.id} has no checkpoint folder", param="path")
    return Steering(folder)


def _capacity(spec: ModelSpec, steering: Steering) -> int:
    """How many slots a load could serve: the session option, else the file, else 4; no range is checked."""
    option = spec.session_options.get("capacity")
    if option is None:
        return int(steering.read("capacity") or DEFAULT_CAPACITY)
    if isinstance(option, bool) or not isinstance(option, int):
        raise ConfigError("session_options.capacity must be an integer", param="session_options")
    return option


def _option(word: str) -> OptionSpec:
    """An option of the file `options`: a number from 0 to 100, or a text where its name is followed by `=text`."""
    name, _, kind = word.partition("=")
    if kind == "text":
        return OptionSpec(name, "string", "a text")
    return OptionSpec(name, "number", "a number", minimum=0, maximum=100)


def _weight_bytes(steering: Steering) -> int:
    return int(steering.read("bytes") or 0)


def _claimed_bytes(steering: Steering) -> int:
    """What inspection says of the memory: an estimate, so it may be wrong."""
    claimed = steering.read("bytes.claimed")
    return _weight_bytes(steering) if claimed is None else int(claimed)


def _allocate(size: int) -> mmap.mmap:
    """Private memory that is really resident, and really gone once it is closed; at least one byte."""
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[::PAGE_BYTES] = b"\1" * len(range(0, len(memory), PAGE_BYTES))
    return memory


def _different(facts: SessionFacts, name: str | None) -> SessionFacts:
    """The facts, changed in the one that is named; an unknown name raises ValueError."""
    match name:
        case None:
            return facts
        case "family":
            return replace(facts, family="another")
        case "task":
            return replace(facts, task=Task.VAD if facts.task is not Task.VAD else Task.ASR)
        case "mode":
            return replace(facts, mode=Mode.STREAMING if facts.mode is Mode.OFFLINE else Mode.OFFLINE)
        case "interfaces":
            return replace(facts, interfaces=frozenset({Interface.OFFLINE}))
        case "sample_rate":
            return replace(facts, sample_rate=2 * facts.sample_rate)
        case "channels":
            return replace(facts, channels=facts.channels + 1)
        case _:
            raise ValueError(f"clone.differs names no fact: {name}")
