"""What a model is registered as, and what its engine says that it can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Interface, Mode, OptionValue, Task
from antiphon.vocabulary.terms import NO_TERMS, Terms

MAX_SLOTS = 16


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """All that an engine needs to know to load a model, and where it is to run.

    Units: `threads` is intra-op threads of one call; with `auto_threads` of a call that is alone, and each of several
    has one. `path` is absolute. Two equal specs load the same thing.
    """

    id: str
    family: str
    path: str
    task: Task
    mode: Mode = Mode.OFFLINE
    slots: int = 1
    device: str = "cpu"
    threads: int = 1
    load_options: Mapping[str, OptionValue] = field(default_factory=dict)
    session_options: Mapping[str, OptionValue] = field(default_factory=dict)
    isolation: Isolation = Isolation.THREAD
    auto_threads: bool = False

    @property
    def threads_setting(self) -> int | Literal["auto"]:
        """The threads as a configuration has them."""
        return "auto" if self.auto_threads else self.threads


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """How long live audio may take, and how much of it there may be; 0 is no limit, but for a chunk's.

    `idle_timeout_s` is the longest without any audio, `total_timeout_s` runs from the first that is taken to the end of
    the last, `send_timeout_s` is the longest that a client may take over one event. A chunk is what comes at once.
    """

    idle_timeout_s: float = 30.0
    total_timeout_s: float = 600.0
    max_body_bytes: int = 512 * 1024 * 1024
    max_chunk_bytes: int = 8 * 1024 * 1024
    send_timeout_s: float = 30.0


_LIVE_LIMITS = LiveLimits()


@dataclass(frozen=True, slots=True)
class Registration:
    """A model as the server was told of it: what the engine needs, and the server's policy for it.

    Units: `busy_timeout_ms` None takes the server's default, 0 waits without bound. `pinned` keeps a loaded model from
    being retired for others or for being idle; to unload it is still possible. The other limits are of a run without
    progress, a load, a teardown and a run that was cancelled, in milliseconds: None takes the server's, 0 is none.
    `aliases` are names beside the id that requests may use. `voice_presets` are what a request says by naming one as
    its voice; what neither it nor these say is as `default_voice_preset`, the name of one, and then as
    `default_request_options` has it.
    """

    spec: ModelSpec
    lazy: bool = False
    busy_timeout_ms: int | None = None
    pinned: bool = False
    run_timeout_ms: int | None = None
    load_timeout_ms: int | None = None
    teardown_timeout_ms: int | None = None
    live: LiveLimits = _LIVE_LIMITS
    aliases: tuple[str, ...] = ()
    voice_presets: Mapping[str, Terms] = field(default_factory=dict)
    default_voice_preset: str | None = None
    default_request_options: Terms = NO_TERMS
    isolation_asked: bool = False
    """Whether the model's own registration names its isolation, which is otherwise the server's."""
    threads_asked: bool = False
    """Whether the model's own registration names its threads."""
    cancel_timeout_ms: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All that the model answers to, its id first."""
        return (self.spec.id, *self.aliases)


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option that a model takes in `TaskRequest.options`, with its range (both ends included)."""

    name: str
    type: Literal["string", "integer", "number", "boolean"]
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capability:
    """What `Adapter.inspect` learns from a model's files without loading them.

    Units: `sample_rate` in Hz (of the audio that the model takes or gives), `weight_bytes` the memory that loading it
    will take, about, with what its engine's libraries take where they are not in memory yet. `languages` empty: not
    limited, or not known.
    """

    tasks: frozenset[Task]
    modes: frozenset[Mode]
    sample_rate: int
    weight_bytes: int
    channels: int = 1
    options: tuple[OptionSpec, ...] = ()
    voices: tuple[str, ...] = ()
    voice_aliases: tuple[str, ...] = ()
    """What else its voices may be called, without being listed: a speaker's number beside the name."""
    languages: tuple[str, ...] = ()
    holds_gil: bool = False
    """Whether its calls keep Python's lock: then nothing else in the engine's process runs meanwhile."""
    clones: bool = False
    """Whether it can speak with the voice of a recording: only then may a request have a `voice_ref`."""
    auto_threads: bool = False
    """Whether its sessions heed `TaskRequest.at_work`, and answer the same bytes whatever that is."""


@dataclass(frozen=True, slots=True)
class DamagedModel:
    """An installed model that a server leaves out, and why: its package, or a file in it, is not what it should be."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What an open session says of itself; every clone of a pool must agree with its primary.

    Units: `sample_rate` in Hz. `capacity` is the number of slots that a load could serve, this one included.
    """

    family: str
    task: Task
    mode: Mode
    interfaces: frozenset[Interface]
    sample_rate: int
    channels: int
    capacity: int
