"""The sides that run in other processes, each measured by the processor time of its own process."""

import time
from collections.abc import Sequence

from antiphon.bench.direct import DONE
from antiphon.bench.load import drive
from antiphon.bench.processes import Measured, wait_for_url
from antiphon.bench.samples import Sample


class ServerSide:
    """A server under load: `requests`, whole and ready to be sent, by a number of clients at once."""

    def __init__(self, name: str, server: Measured, url: str, requests: Sequence[bytes], clients: int) -> None:
        self.name = name
        self._server = server
        self._url = url
        self._requests = requests
        self._clients = clients

    def measure(self) -> Sample:
        """Send them all."""
        before_s = self._server.cpu_s()
        wall_s = drive(self._url, self._requests, self._clients)
        return Sample(len(self._requests), wall_s, self._server.cpu_s() - before_s)


class DirectSide:
    """An engine that is called without a server, by `callers` threads; its process was given `inputs` pieces."""

    def __init__(self, name: str, process: Measured, callers: int, inputs: int) -> None:
        self.name = name
        self._process = process
        self._callers = callers
        self._inputs = inputs

    def measure(self) -> Sample:
        """Have them all worked off."""
        before_s, started_s = self._process.cpu_s(), time.perf_counter()
        self._process.tell(str(self._callers))
        self._process.wait_for(lambda line: line == DONE, timeout_s=600.0)
        wall_s = time.perf_counter() - started_s
        return Sample(self._inputs, wall_s, self._process.cpu_s() - before_s)


class ServerStart:
    """From nothing to a server that listens."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self._arguments = arguments

    def measure(self) -> Sample:
        """Start one, and end it again."""
        started_s = time.perf_counter()
        with Measured(self._arguments) as server:
            wait_for_url(server)
            return Sample(1, time.perf_counter() - started_s, server.cpu_s())


class BareImports:
    """From nothing to an interpreter that has imported what any such server imports."""

    MODULES = ("fastapi", "uvicorn", "pydantic", "numpy")

    def __init__(self, name: str) -> None:
        self.name = name

    def measure(self) -> Sample:
        """Start one, and end it again."""
        program = f"import {', '.join(self.MODULES)}; print('imported', flush=True); input()"
        started_s = time.perf_counter()
        with Measured(["-c", program]) as process:
            process.wait_for(lambda line: line == "imported")
            return Sample(1, time.perf_counter() - started_s, process.cpu_s())
