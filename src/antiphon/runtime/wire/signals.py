"""What may be said about a call that is under way, whatever the call is."""

from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.faults import Failed


class Cancel(Message):
    """The client of the call's request number `index` has left."""

    index: int = 0


class Grant(Message):
    """The reader of a stream took this many events."""

    count: int


class Leave(Message):
    """The reader of a stream takes no more."""


class Want(Message):
    """An answer: the engine waits for the next piece of its live audio."""


class Heard(Message):
    """The next piece of live audio is beside this. Units: `offset` in frames from the beginning."""

    offset: int


class Hushed(Message):
    """The live audio has ended, properly or in a fault."""

    fault: Failed | None


class Began(Message):
    """An answer to the start of a stream: all is prepared, and events follow."""


class Ended(Message):
    """An answer: there are no more events, and the engine is quiet."""
