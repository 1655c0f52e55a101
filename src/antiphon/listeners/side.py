"""The listeners beside the default one, as one: opened, served and joined together. What each speaks only it knows."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from antiphon.ports.listener import Listener, Served
from antiphon.vocabulary.errors import AntiphonError, ConfigError, ListenerBroken

log = logging.getLogger(__name__)


class SideListeners:
    """Listeners in the order in which they are configured.

    The way is `open`, then `start`, then `join`; `close` instead of `start` if nothing is served after all.
    """

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self._listeners = list(listeners)
        self._opened: list[tuple[str, Listener]] = []
        self._serving: list[asyncio.Task[None]] = []
        self._broken: ListenerBroken | None = None

    def open(self) -> None:
        """Open each; raises the ConfigError of the first that cannot be; then none is open."""
        try:
            for listener in self._listeners:
                self._opened.append((_opened(listener), listener))
        except BaseException:
            self.close()
            raise

    def start(self, served: Served, on_broken: Callable[[], None]) -> None:
        """Serve on all of them. The first that breaks calls `on_broken`, which is to begin the stop of the server."""
        for address, listener in self._opened:
            log.info("listening on %s", address)
            self._serving.append(asyncio.create_task(self._serve(address, listener, served, on_broken)))
        self._opened.clear()

    async def join(self) -> None:
        """Wait until every one has returned, each once it has drained; raises ListenerBroken if one broke."""
        if self._serving:
            await asyncio.wait(self._serving)
        if self._broken is not None:
            raise self._broken

    def close(self) -> None:
        """Give back what was opened and is not served."""
        while self._opened:
            self._opened.pop()[1].close()

    async def _serve(self, address: str, listener: Listener, served: Served, on_broken: Callable[[], None]) -> None:
        try:
            await listener.serve(served)
        except Exception as error:  # the edge that owns what becomes of a listener: the server stops in order
            log.exception("the listener on %s broke", address)
            self._broken = self._broken or ListenerBroken(f"the listener on {address} broke: {error}")
        finally:
            if not served.stop.begun.is_set():
                self._broken = self._broken or ListenerBroken(f"the listener on {address} ended by itself")
                on_broken()


def _opened(listener: Listener) -> str:
    try:
        return listener.open()
    except AntiphonError:
        raise
    except Exception as error:  # whatever somebody else's listener raises: the start ends in one line
        raise ConfigError(f"the listener {type(listener).__name__} cannot be opened: {error}") from error
