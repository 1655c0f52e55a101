"""Processes that are measured from outside: started, waited for, read and ended."""

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Self

from antiphon.bench.errors import BenchError

_START_S = 120.0
_STOP_S = 15.0
_LAST_LINES = 8
_LISTENING = "listening on "


class Measured:
    """A child process; use it as a context manager, which ends it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter, on our own modules)
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        self._arguments = arguments
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._readers: list[threading.Thread] = []
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            self._readers.append(threading.Thread(target=self._read, args=(pipe,), daemon=True))
            self._readers[-1].start()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def cpu_s(self) -> float:
        """Processor seconds of all its threads so far, ended ones included, to the nanosecond.

        Source of the clock's number: Linux, include/linux/posix-timers.h, MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED),
        which is what clock_getcpuclockid(3) returns. /proc/PID/stat counts in ticks of 10 ms, too coarse for a turn.
        """
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def wait_for(self, wanted: Callable[[str], bool], timeout_s: float = _START_S) -> str:
        """Wait for a line of its output, either stream; raises BenchError where it ends or falls silent before."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise BenchError(f"{self._name} said nothing for {timeout_s:g} s; {self._last_words()}") from None
            if line is None:
                for reader in self._readers:  # what it said last may be in the other stream
                    reader.join(timeout=1.0)
                raise BenchError(f"{self._name} has ended; {self._last_words()}")
            if wanted(line):
                return line

    def tell(self, line: str) -> None:
        """Write a line to its input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise BenchError(f"{self._name} has ended; {self._last_words()}") from error

    def close(self) -> None:
        """Have it end, by force if it does not; harmless when done twice."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def _name(self) -> str:
        return " ".join(["python", *self._arguments])[:120]

    def _last_words(self) -> str:
        return f"its last lines: {' | '.join(self._said) or 'none'}"

    def _read(self, pipe: IO[str]) -> None:
        for line in pipe:
            self._said.append(line.rstrip())
            self._lines.put(line.rstrip())
        self._lines.put(None)


def wait_for_url(process: Measured) -> str:
    """The base URL that a server announces once it listens."""
    return process.wait_for(lambda line: _LISTENING in line).partition(_LISTENING)[2].strip()
