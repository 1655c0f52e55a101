"""How a server ends: told once it drains until a deadline, told again or at the deadline it gives up what is left."""

from collections.abc import Callable
from typing import Protocol

from antiphon.ports.clock import Clock, Timer
from antiphon.ports.listener import StopOrder


class Ending(Protocol):
    """What ends with the server: its runtime, or its replicas."""

    def refuse(self) -> None:
        """Take no new work."""
        ...

    def cut(self) -> None:
        """Give up what has not ended."""
        ...


class Shutdown:
    """The two moments of an end, for the runtime and, as `order`, for the listeners. It joins nobody.

    Units: `drain_timeout_s` seconds from the first call of `ask` to the cut; 0 is no deadline. `kill_codec` ends
    what is being decoded by then; `on_begun` is called once, when the end begins.
    """

    def __init__(
        self,
        runtime: Ending,
        clock: Clock,
        drain_timeout_s: float,
        kill_codec: Callable[[], None] | None = None,
        on_begun: Callable[[], None] | None = None,
    ) -> None:
        self.order = StopOrder()
        self._runtime = runtime
        self._kill_codec = kill_codec
        self._on_begun = on_begun
        self._clock = clock
        self._drain_timeout_s = drain_timeout_s
        self._deadline: Timer | None = None

    def ask(self) -> None:
        """Begin to end; asked a second time, the deadline is now."""
        if self.order.begun.is_set():
            self.cut()
        else:
            self.begin()

    def begin(self) -> None:
        """Take no new work from now on; harmless when done twice."""
        if self.order.begun.is_set():
            return
        self.order.begun.set()
        self._runtime.refuse()
        if self._on_begun is not None:
            self._on_begun()
        if self._drain_timeout_s:
            self._deadline = self._clock.call_at(self._clock.now() + self._drain_timeout_s, self.cut)

    def cut(self) -> None:
        """Give up what has not ended; harmless when done twice."""
        if self.order.cut.is_set():
            return
        self.begin()
        if self._kill_codec is not None:
            self._kill_codec()
        self._runtime.cut()  # first: whoever waits is refused before its connection goes
        self.order.cut.set()

    def close(self) -> None:
        """All has ended: there is no deadline any more."""
        if self._deadline is not None:
            self._deadline.cancel()
