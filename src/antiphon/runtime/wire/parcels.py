"""From frames to messages, each with the sounds that came before it; it decodes none."""

from collections.abc import Iterator
from typing import NamedTuple

from antiphon.runtime.wire.frames import FrameReader, Kind, sound_of
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InsufficientMemory
from antiphon.vocabulary.spool import PcmWriter


class Parcel:
    """The sounds beside one message. Large ones lie in an unlinked file."""

    def __init__(self) -> None:
        self._writers: list[PcmWriter] = []
        self._fault: OSError | None = None

    def begin(self, rate: int, channels: int) -> None:
        """Begin the next sound."""
        self._writers.append(PcmWriter(rate, channels))

    def add(self, samples: memoryview) -> None:
        """Append to the sound that was begun last; what fails at it is told by `take`."""
        if self._fault is not None:
            return
        try:
            self._writers[-1].write(samples)
        except OSError as fault:
            self._fault = fault
            self.close()

    def take(self) -> list[Pcm]:
        """The sounds, in their order. Raises InsufficientMemory where there was no room for them."""
        if self._fault is not None:
            raise InsufficientMemory("there was no room for an audio") from self._fault
        return [writer.finish() for writer in self._writers]

    def close(self) -> None:
        """Drop what came."""
        for writer in self._writers:
            writer.close()


NO_SOUNDS = Parcel()
"""What comes with most messages."""


class Delivery(NamedTuple):
    """A whole message, still encoded, in a view that is good until the next is taken."""

    call: int
    message: memoryview
    parcel: Parcel


class Inbox:
    """Collects what arrives on one stream."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._parcels: dict[int, Parcel] = {}

    def room(self) -> memoryview:
        """Where the next bytes are to be put."""
        return self._reader.room()

    def deliveries(self, count: int) -> Iterator[Delivery]:
        """The messages that are whole now that `count` more bytes are there; take all of them. Raises ValueError."""
        for call, kind, payload in self._reader.frames(count):
            if kind == Kind.MESSAGE:
                yield Delivery(call, payload, self._parcels.pop(call, NO_SOUNDS))
            elif kind == Kind.AUDIO and call in self._parcels:
                self._parcels[call].add(payload)
            elif kind == Kind.SOUND:
                self._parcels.setdefault(call, Parcel()).begin(*sound_of(payload))
            else:
                raise ValueError(f"a frame of kind {kind} that has no place here")

    def close(self) -> None:
        """Drop what is not whole."""
        for parcel in self._parcels.values():
            parcel.close()
        self._parcels.clear()
