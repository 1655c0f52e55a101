"""From message to bytes and back: MessagePack, and JSON for the few values that it has no form for."""

import json
from typing import Generic, TypeVar

import msgspec

Told = TypeVar("Told")

_JSON_ARRAY = ord("[")
"""No message in MessagePack begins with this byte: it would be the number 91."""


class Message(msgspec.Struct, tag=True, array_like=True):
    """What every message is: its name, then its fields."""


_encoder = msgspec.msgpack.Encoder()


def encoded(message: Message) -> bytes:
    """The message's bytes. Half of a surrogate pair and integers beyond 64 bits are legal in JSON alone."""
    try:
        return _encoder.encode(message)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(message)).encode()


class Decoder(Generic[Told]):
    """Reads one union of messages, every one of them a `Message`."""

    def __init__(self, kinds: object) -> None:
        self._kinds = kinds
        self._decoder: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(kinds)

    def decode(self, data: memoryview) -> Told:
        """Read a message. Raises ValueError for anything else: what comes from a process is not trusted."""
        try:
            if data and data[0] == _JSON_ARRAY:
                told: Told = msgspec.convert(json.loads(bytes(data)), self._kinds)
                return told
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"a message that is none: {error}") from error
