"""What a live stream finds, as the turns of a conversation: utterances become items, pieces of text their deltas."""

from typing import assert_never

from antiphon.http.realtime.items import Conversation, Event, completed, delta, event, failed, new_id
from antiphon.transcripts.clock import milliseconds
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    SpeechStarted,
    SpeechStopped,
    StreamEvent,
    TextDelta,
    TurnsDelta,
)


class Turns:
    """The turns of one stream. Units: `rate` in Hz; `start_ms` is how much audio of the session came before it.

    Text that comes outside of an utterance, as of a model that finds none, makes an item of its own.
    """

    def __init__(self, conversation: Conversation, rate: int, start_ms: int) -> None:
        self._conversation = conversation
        self._rate = rate
        self._start_ms = start_ms
        self._item_id: str | None = None
        self._text = ""
        self._since_ms = start_ms
        self.count = 0
        """How many items there were."""

    def tell(self, found: StreamEvent) -> list[Event]:
        """What is told of it."""
        match found:
            case SpeechStarted(at_sample=at):
                self._since_ms = self._ms(at)
                told = self._end(self._since_ms)  # a model that forgot to say so
                item_id = self._begin()
                started = event("input_audio_buffer.speech_started", item_id=item_id, audio_start_ms=self._since_ms)
                return [*told, started]
            case SpeechStopped(at_sample=at):
                end_ms = self._ms(at)
                stopped = event(
                    "input_audio_buffer.speech_stopped", item_id=self._item_id or self._begin(), audio_end_ms=end_ms
                )
                return [stopped, *self._end(end_ms)]
            case TextDelta(text=text):
                item_id = self._item_id or self._begin()
                self._text += text
                return [delta(item_id, text)]
            case TurnsDelta() | AudioDelta() | Final():
                return []
            case _:
                assert_never(found)

    def finish(self, end_ms: int) -> list[Event]:
        """The stream has ended properly."""
        return self._end(end_ms)

    def fail(self, error: AntiphonError) -> list[Event]:
        """The stream has broken off: what is open has no transcript."""
        item_id, self._item_id = self._item_id, None
        return [] if item_id is None else [*self._conversation.commit(item_id), failed(item_id, error)]

    def _begin(self) -> str:
        self._item_id, self._text = new_id("item"), ""
        self.count += 1
        return self._item_id

    def _end(self, end_ms: int) -> list[Event]:
        item_id, self._item_id = self._item_id, None
        if item_id is None:
            return []
        seconds = max(0, end_ms - self._since_ms) / 1000
        self._since_ms = end_ms
        return [*self._conversation.commit(item_id), completed(item_id, self._text, seconds)]

    def _ms(self, sample: int) -> int:
        return self._start_ms + milliseconds(sample, self._rate)
