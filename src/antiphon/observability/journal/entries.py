"""What a journal holds, and how it is written: one JSON object a line. It records nothing and replays nothing.

Units: `time` in seconds since 1970, `now` in monotonic seconds, which is what the core was told; `..._s` in seconds.
Claims are named by their number at their model's gate (`waiter`). What is as ever is left out of a line.
"""

from typing import TypeAlias

import msgspec

from antiphon.vocabulary.states import EvictionCause, ModelState, Operation

VERSION = 1


class Grant(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="granted"):
    """A claim has its lease, from the entry's `now` on; without a slot it is the whole model's."""

    waiter: int
    slot: int | None = None
    operation: Operation = Operation.INFER
    request_id: str | None = None


class Refusal(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="refused"):
    """A claim is out of the queue: `expired`, `overdue` or `shutting_down`."""

    waiter: int
    reason: str
    operation: Operation = Operation.INFER
    request_id: str | None = None


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    """Something that happened to one model. `seq` counts the entries of one run of the server, from 1."""

    seq: int
    time: float
    now: float
    model: str


class Held(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A lease that is out; without a slot it is the whole model's."""

    waiter: int
    operation: Operation
    entered: float
    since: float
    slot: int | None = None
    deadline: float | None = None


class Queued(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A claim that waits, without bound where it has no deadline."""

    waiter: int
    operation: Operation
    entered: float
    deadline: float | None = None


class Opened(Entry, frozen=True, gc=False, tag="open"):
    """A model's gate is new; or, at the head of a file, so the model stands. `next` is the next claim's number."""

    slots: int
    next: int = 0
    state: ModelState = ModelState.UNLOADED
    leases: tuple[Held, ...] = ()
    queue: tuple[Queued, ...] = ()


class Call(Entry, frozen=True, gc=False):
    """A call to a model's gate."""


class Submitted(Call, frozen=True, gc=False, tag="submit"):
    """A claim enters; it waits `timeout_s` at most, 0 without bound."""

    waiter: int
    operation: Operation
    timeout_s: float
    request_id: str | None = None
    decided: tuple[Grant | Refusal, ...] = ()


class Tried(Call, frozen=True, gc=False, tag="try_exclusive"):
    """The whole model was asked for, if it is idle; `waiter` is the claim that has it now, if it was."""

    operation: Operation
    waiter: int | None = None
    request_id: str | None = None
    decided: tuple[Grant | Refusal, ...] = ()


class Released(Call, frozen=True, gc=False, tag="release"):
    """A lease is given back."""

    waiter: int
    operation: Operation = Operation.INFER
    request_id: str | None = None
    decided: tuple[Grant | Refusal, ...] = ()


class Resized(Call, frozen=True, gc=False, tag="resize"):
    """The one who has the whole model changes its slots."""

    waiter: int
    slots: int
    decided: tuple[Grant | Refusal, ...] = ()


class Withdrawn(Call, frozen=True, gc=False, tag="withdraw"):
    """A claim leaves the queue by itself."""

    waiter: int
    operation: Operation = Operation.INFER
    request_id: str | None = None
    decided: tuple[Grant | Refusal, ...] = ()


class Dismissed(Call, frozen=True, gc=False, tag="dismiss"):
    """All who wait are refused but these."""

    spared: tuple[int, ...] = ()
    decided: tuple[Grant | Refusal, ...] = ()


class Expired(Call, frozen=True, gc=False, tag="expire"):
    """Time has passed."""

    decided: tuple[Grant | Refusal, ...] = ()


class Changed(Entry, frozen=True, gc=False, tag="transition"):
    """A model changed its state. `operation` is the one that holds it then; `step` is left out where it is not known.

    `request_id` is the request that holds the whole model, or in whose course it happened.
    """

    before: ModelState
    after: ModelState
    step: str | None = None
    operation: Operation | None = None
    request_id: str | None = None


class Registered(Entry, frozen=True, gc=False, tag="registered"):
    """A model is new, or is registered as something else from now on."""

    operation: Operation | None = None
    request_id: str | None = None


class Loaded(Entry, frozen=True, gc=False, tag="loaded"):
    """A pool was built, in this time, and is in use."""

    load_s: float
    request_id: str | None = None


class LoadFailed(Entry, frozen=True, gc=False, tag="load_failed"):
    """A load that had begun left nothing."""

    request_id: str | None = None


class Evicted(Entry, frozen=True, gc=False, tag="evicted"):
    """An idle model is out of use: for another one, `newcomer`, or because it was idle for too long."""

    cause: EvictionCause
    newcomer: str | None = None
    request_id: str | None = None


class Died(Entry, frozen=True, gc=False, tag="died"):
    """The process of the model's engine has ended without being told to."""


class Failed(Entry, frozen=True, gc=False, tag="failed"):
    """Something went wrong that the server goes on without."""

    what: str
    error: str
    request_id: str | None = None


class Header(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="journal"):
    """A file's first line. `run` names the run of the server; `seq` is the last entry before those of this file.

    Where that is not 0, the first entries tell how each model stood then.
    """

    version: int
    server: str
    run: str
    seq: int
    max_loaded_models: int = 0


Decided: TypeAlias = Grant | Refusal
CoreCall: TypeAlias = Submitted | Tried | Released | Resized | Withdrawn | Dismissed | Expired
Event: TypeAlias = Changed | Registered | Loaded | LoadFailed | Evicted | Died | Failed
AnyEntry: TypeAlias = Opened | CoreCall | Event

line_decoder = msgspec.json.Decoder(Header | AnyEntry)
line_encoder = msgspec.json.Encoder()
