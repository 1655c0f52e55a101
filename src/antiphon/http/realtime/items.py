"""The events that a server tells of a conversation: their ids, their order, their shapes. It hears no audio."""

from collections.abc import Mapping
from typing import TypeAlias
from uuid import uuid4

from antiphon.http.envelope import error_body
from antiphon.vocabulary.errors import AntiphonError

Event: TypeAlias = Mapping[str, object]

_TRANSCRIPTION = "conversation.item.input_audio_transcription"


def new_id(kind: str) -> str:
    """An id of this kind of thing."""
    return f"{kind}_{uuid4().hex}"


def event(kind: str, **fields: object) -> Event:
    """An event of the server's."""
    return {"type": kind, "event_id": new_id("event"), **fields}


def error_event(error: AntiphonError, event_id: str | None = None) -> Event:
    """What went wrong; `event_id` is that of the client's event that it went wrong in."""
    return event("error", error={**error_body(error)["error"], "event_id": event_id})


def delta(item_id: str, text: str) -> Event:
    """A piece of an item's transcript."""
    return event(f"{_TRANSCRIPTION}.delta", item_id=item_id, content_index=0, delta=text)


def completed(item_id: str, text: str, seconds: float) -> Event:
    """An item's whole transcript."""
    usage = {"type": "duration", "seconds": round(seconds, 3)}
    return event(f"{_TRANSCRIPTION}.completed", item_id=item_id, content_index=0, transcript=text, usage=usage)


def failed(item_id: str, error: AntiphonError) -> Event:
    """Why an item has no transcript."""
    return event(f"{_TRANSCRIPTION}.failed", item_id=item_id, content_index=0, error=error_body(error)["error"])


class Conversation:
    """The items in their order; `is_old` speaks the older version of the protocol."""

    def __init__(self, *, is_old: bool) -> None:
        self._is_old = is_old
        self._last_id: str | None = None

    def commit(self, item_id: str) -> list[Event]:
        """The audio so far is an item."""
        place = {"previous_item_id": self._last_id}
        self._last_id = item_id
        item = {
            "id": item_id,
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        told = ["conversation.item.created"] if self._is_old else ["conversation.item.added", "conversation.item.done"]
        committed = event("input_audio_buffer.committed", item_id=item_id, **place)
        return [committed, *(event(kind, item=item, **place) for kind in told)]
