"""What the server and a codec worker say to each other. An upload is a descriptor, and has a line of its own."""

from typing import TypeAlias

from antiphon.audio.limits import DecodeLimits
from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.faults import Failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Leave


class Decode(Message):
    """Decode the upload whose descriptor was sent before this, within limits."""

    limits: DecodeLimits


class Block(Message):
    """The next samples are beside this."""


Order: TypeAlias = Decode | Cancel | Grant | Leave
Answer: TypeAlias = Began | Block | Ended | Failed


def order_decoder() -> Decoder[Order]:
    """Reads orders."""
    return Decoder(Order)


def answer_decoder() -> Decoder[Answer]:
    """Reads answers."""
    return Decoder(Answer)
