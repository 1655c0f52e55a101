"""The source's side of live audio: one piece is taken for each that an engine asks for. It knows no engine."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError, ClientLeft, EngineError

log = logging.getLogger(__name__)


class Feeding:
    """Takes from `audio` on the event loop, and calls `give` with each piece and `end` with how it ended, once."""

    def __init__(
        self,
        audio: AsyncIterator[AudioChunk],
        give: Callable[[AudioChunk], None],
        end: Callable[[AntiphonError | None], None],
    ) -> None:
        self._audio = audio
        self._give = give
        self._end = end
        self._taking: asyncio.Task[None] | None = None
        self._is_over = False

    def ask(self) -> None:
        """The engine waits for the next piece."""
        if not self._is_over:
            self._taking = asyncio.ensure_future(self._take())

    async def aclose(self) -> None:
        """Take no more, and let the engine know if it waits or will wait."""
        self._over(ClientLeft("the stream is closed"))
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.wait([self._taking])

    async def _take(self) -> None:
        try:
            chunk = await anext(self._audio)
        except StopAsyncIteration:
            self._over(None)
        except AntiphonError as fault:
            self._over(fault)
        except Exception:  # whoever wrote the source: its stream ends, in a fault
            log.exception("live audio could not be read")
            self._over(EngineError("the live audio could not be read"))
        else:
            if not self._is_over:
                self._give(chunk)

    def _over(self, fault: AntiphonError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._end(fault)
