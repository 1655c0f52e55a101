"""Server-sent events as this server writes them, from the pieces of an answer. It knows what ends them, no route.

Source of the form: https://html.spec.whatwg.org/multipage/server-sent-events.html; each event has one line of data.
"""

from collections.abc import AsyncIterator

import msgspec

from antiphon.listeners.in_process import AppRefusal, ErrorFields
from antiphon.vocabulary.errors import EngineError

_DATA = b"data:"
_END = b"[DONE]"


class ServerEvent(msgspec.Struct, frozen=True):
    """One event: its type, and those of its fields that listeners read, empty where it has none.

    `audio` is what was sent in base64.
    """

    type: str
    delta: str = ""
    text: str = ""
    audio: bytes = b""
    error: ErrorFields | None = None


_EVENT = msgspec.json.Decoder(ServerEvent)


async def server_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """Yield each event until the end mark.

    Raises AppRefusal for an `error` event, and EngineError where the pieces end without the mark.
    """
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            data = line.removeprefix(_DATA).strip()
            if data == _END:
                return
            if line.startswith(_DATA):
                yield _checked(_EVENT.decode(data))
    raise EngineError("the answer broke off")


def _checked(event: ServerEvent) -> ServerEvent:
    if event.error is not None:
        raise AppRefusal(200, event.error.message, event.error.code)
    return event
