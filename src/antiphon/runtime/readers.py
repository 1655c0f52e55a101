"""How long the reader of a stream may keep the stream's slot from others.

An engine makes the next piece once the last one was taken. So a reader that takes a few bytes a minute would hold the
slot for days. One that plays the sound as it comes takes as long as it sounds, and needs no more than that.
"""

from collections.abc import Callable

from antiphon.ports.clock import Clock, Timer
from antiphon.vocabulary.tasks import AudioDelta, TaskResult

_SHARE = 2.0
"""How often the time that a sound lasts may be taken for reading it: a player may stall now and then."""

_LOOK_S = 1.0
"""How often to look, in seconds, whether anyone has come to wait for the slot of a reader that has used up its time."""


class ReaderWatch:
    """The time of one stream's reader: `grace_s` for all of the stream, and twice the length of the sound it was given.

    Once that is used up, and others wait for the model (`is_wanted`), `on_too_slow` is called, once. Units: seconds; a
    `grace_s` of 0 is no limit.
    """

    def __init__(
        self, clock: Clock, grace_s: float, is_wanted: Callable[[], bool], on_too_slow: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._is_limited = grace_s > 0
        self._left_s = grace_s
        self._is_wanted = is_wanted
        self._on_too_slow = on_too_slow
        self._given_at = 0.0
        self._alarm: Timer | None = None

    def give(self, item: object) -> None:
        """The reader has the next item; its time runs until `asked`."""
        if not self._is_limited:
            return
        self._left_s += _SHARE * _duration_s(item)
        self._given_at = self._clock.now()
        self._alarm = self._clock.call_at(self._given_at + max(0.0, self._left_s), self._ring)

    def asked(self) -> None:
        """The reader wants the next item, or none any more; may be called again."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._left_s -= self._clock.now() - self._given_at

    def _ring(self) -> None:
        if self._is_wanted():
            self._is_limited = False
            self._on_too_slow()
        else:
            self._alarm = self._clock.call_at(self._clock.now() + _LOOK_S, self._ring)


def _duration_s(item: object) -> float:
    """How long the sound in an event of a stream, or in a result of a batch, lasts."""
    match item:
        case AudioDelta(pcm):
            return pcm.duration_s
        case (_, TaskResult(audio=audio)) if audio is not None:
            return audio.duration_s
        case _:
            return 0.0
