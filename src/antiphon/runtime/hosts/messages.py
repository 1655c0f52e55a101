"""What a host and its worker say to each other: orders, answers, and how our values become parts of them.

Audio is no part of a message: it goes beside it, in the order in which the message says that there is some.
"""

from typing import TypeAlias

from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.faults import Failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Heard, Hushed, Leave, Want
from antiphon.vocabulary.spec import Capability, SessionFacts
from antiphon.vocabulary.tasks import (
    Mode,
    Segment,
    SpeakerTurn,
    Task,
    Word,
)

Options: TypeAlias = dict[str, object]
"""JSON values, which msgspec has no recursive type for."""


class Spec(Message):
    """A `ModelSpec`."""

    id: str
    family: str
    path: str
    task: Task
    mode: Mode
    slots: int
    device: str
    threads: int
    load_options: Options
    session_options: Options
    auto_threads: bool


class Begin(Message):
    """The worker's first order, without an answer: the adapter as "module:Class", and what it will load."""

    adapter: str
    spec: Spec


class Inspect(Message):
    """Say what the model can do."""


class Load(Message):
    """Read the weights."""


class Open(Message):
    """Open the primary."""


class Probe(Message):
    """Open a session as `spec` has it, and close it."""

    spec: Spec


class Clone(Message):
    """Clone the primary behind `slot`."""

    slot: int


class Asked(Message):
    """A `TaskRequest`, with whether an audio and a reference voice go beside it, and whether audio follows it."""

    text: str | None
    language: str | None
    voice: str | None
    seed: int
    options: Options
    audio: bool
    voice_ref: bool
    live: bool


class Run(Message):
    """Prepare and run one request."""

    slot: int
    request: Asked


class RunBatch(Message):
    """Prepare and run several."""

    slot: int
    requests: tuple[Asked, ...]


class Stream(Message):
    """Prepare and stream one request."""

    slot: int
    request: Asked


class Close(Message):
    """Close the sessions, then the weights."""


class Inspected(Message):
    """What the model can do."""

    capability: Capability


class Opened(Message):
    """What a session is; None where there is none."""

    facts: SessionFacts | None


class Done(Message):
    """It is done, and there is nothing to say of it."""


class Result(Message):
    """A `TaskResult`, with whether an audio goes beside it."""

    text: str | None
    language: str | None
    segments: tuple[Segment, ...]
    words: tuple[Word, ...]
    speaker_turns: tuple[SpeakerTurn, ...]
    sample_rate: int | None
    audio: bool


class Answered(Message):
    """The result of a batch's request number `index`."""

    index: int
    result: Result


class Spoken(Message):
    """The next piece of speech is beside this."""


class Written(Message):
    """The next piece of a transcript."""

    text: str
    until_sample: int | None


class Turned(Message):
    """Speaker turns that became certain."""

    turns: tuple[SpeakerTurn, ...]


class Started(Message):
    """Somebody began to speak."""

    at_sample: int


class Stopped(Message):
    """An utterance is over."""

    at_sample: int


class Concluded(Message):
    """The whole result of a stream."""

    result: Result


Order: TypeAlias = (
    Begin
    | Inspect
    | Load
    | Open
    | Probe
    | Clone
    | Run
    | RunBatch
    | Stream
    | Close
    | Cancel
    | Grant
    | Leave
    | Heard
    | Hushed
)
Answer: TypeAlias = (
    Inspected
    | Opened
    | Done
    | Result
    | Began
    | Want
    | Answered
    | Spoken
    | Written
    | Turned
    | Started
    | Stopped
    | Concluded
    | Ended
    | Failed
)


def order_decoder() -> Decoder[Order]:
    """Reads orders."""
    return Decoder(Order)


def answer_decoder() -> Decoder[Answer]:
    """Reads answers."""
    return Decoder(Answer)
