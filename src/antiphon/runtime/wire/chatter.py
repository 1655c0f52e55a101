"""What a process prints, line by line into the log; it understands none of it."""

import asyncio
import logging

MAX_LINE_BYTES = 2000
"""A longer line is cut into several."""
MAX_LINES_A_SECOND = 200
"""More than these are counted and not written: a log is not to cost the server its time."""

log = logging.getLogger(__name__)


class Chatter(asyncio.Protocol):
    """Drains the pipe of a process's output, so that printing never blocks it. `name` goes before each line."""

    def __init__(self, name: str) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._name = name
        self._rest = b""
        self._second = 0
        self._lines = 0

    def data_received(self, data: bytes) -> None:
        """Log the lines that are whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)
        while len(self._rest) > MAX_LINE_BYTES:
            self._tell(self._rest[:MAX_LINE_BYTES])
            self._rest = self._rest[MAX_LINE_BYTES:]

    def connection_lost(self, exc: Exception | None) -> None:
        """Log what was not ended by a newline."""
        del exc
        if self._rest:
            self._tell(self._rest)
        self._count_anew()
        if not self.ended.done():
            self.ended.set_result(None)

    def _tell(self, line: bytes) -> None:
        for start in range(0, len(line), MAX_LINE_BYTES):
            if (second := int(asyncio.get_running_loop().time())) != self._second:
                self._count_anew()
                self._second = second
            self._lines += 1
            if self._lines <= MAX_LINES_A_SECOND:
                text = line[start : start + MAX_LINE_BYTES].decode("utf-8", "replace").rstrip()
                log.info("%s: %s", self._name, "".join(it if it.isprintable() else "?" for it in text))

    def _count_anew(self) -> None:
        if self._lines > MAX_LINES_A_SECOND:
            log.warning("%s: %d more lines in one second", self._name, self._lines - MAX_LINES_A_SECOND)
        self._lines = 0
