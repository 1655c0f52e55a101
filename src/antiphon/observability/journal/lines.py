"""A journal on its way to a file: entries are gathered, and handed over as lines a few times a second.

So a server that is killed loses its last tenth of a second. A file that is full is followed by another, whose head
tells how every model stands, as that of the first does: each can be replayed by itself.
"""

from collections.abc import Sequence
from typing import Protocol

from antiphon import __version__
from antiphon.observability.journal.entries import VERSION, AnyEntry, Header, line_encoder
from antiphon.observability.journal.journal import Journal
from antiphon.ports.clock import Clock, Timer

FLUSH_S = 0.1


class LineSink(Protocol):
    """Where lines go. `append` returns at once; what `failed` takes no more."""

    failed: bool

    def append(self, lines: bytes, *, anew: bool = False) -> None: ...
    async def close(self) -> None: ...


class JournalLines:
    """Writes all entries of a journal. Units: `max_bytes` of a file, which its last block may go past."""

    def __init__(
        self, journal: Journal, sink: LineSink, clock: Clock, max_bytes: int, max_loaded_models: int = 0
    ) -> None:
        self._journal = journal
        self._sink = sink
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_loaded_models = max_loaded_models
        self._batch: list[AnyEntry] = []
        self._timer: Timer | None = None
        self._bytes = 0

    def start(self) -> None:
        """Write how all stands, and what happens from now on; call it on the event loop."""
        self._journal.hearers.append(self._hear)
        self._append(self._beginning())

    def flush(self) -> None:
        """Hand over what was gathered."""
        self._cancel()
        batch, self._batch = self._batch, []
        if batch:
            self._append(batch)

    async def close(self) -> None:
        """Hand over the last entries, and hear no more; returns once all is written."""
        self._forget()
        self.flush()
        await self._sink.close()

    def _hear(self, entry: AnyEntry) -> None:
        self._batch.append(entry)
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.now() + FLUSH_S, self.flush)

    def _append(self, lines: Sequence[Header | AnyEntry], *, anew: bool = False) -> None:
        if self._sink.failed:
            self._forget()
            return
        block = line_encoder.encode_lines(lines)
        self._bytes = len(block) if anew else self._bytes + len(block)
        self._sink.append(block, anew=anew)
        if self._bytes > self._max_bytes and not anew:
            self._append(self._beginning(), anew=True)

    def _beginning(self) -> list[Header | AnyEntry]:
        head = Header(VERSION, __version__, self._journal.run, self._journal.last, self._max_loaded_models)
        return [head, *self._journal.standing()]

    def _forget(self) -> None:
        if self._hear in self._journal.hearers:
            self._journal.hearers.remove(self._hear)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
