"""What the server and a codec worker say to each other. A file is a descriptor, and has a line of its own."""

from typing import TypeAlias

from antiphon.audio.limits import DecodeLimits
from antiphon.ports.codec import AudioFormat
from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.faults import Failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Leave


class Decode(Message):
    """Decode the upload whose descriptor was sent before this, within limits."""

    limits: DecodeLimits


class Encode(Message):
    """Encode the file of 32-bit floats, interleaved, whose descriptor was sent before this. Units: `rate` in Hz."""

    audio_format: AudioFormat
    rate: int
    channels: int


class Block(Message):
    """The next samples are beside this."""


class Written(Message):
    """Bytes of an encoded file and where in it they go, which may be over earlier ones."""

    offset: int
    data: bytes


Order: TypeAlias = Decode | Encode | Cancel | Grant | Leave
Answer: TypeAlias = Began | Block | Written | Ended | Failed


def order_decoder() -> Decoder[Order]:
    """Reads orders."""
    return Decoder(Order)


def answer_decoder() -> Decoder[Answer]:
    """Reads answers."""
    return Decoder(Answer)
