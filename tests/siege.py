"""A server under attack: its pulse and its memory while that lasts, and whether it still serves. It attacks nobody.

    with besieged(tmp_path, max_connections=50) as siege, ExitStack() as held:
        with siege.watched(max_growth_bytes=16 * MIB):
            for _ in range(60):
                held.enter_context(siege.connect()).sendall(HALF_A_REQUEST)

`watched` asserts what must be true under every attack: 99 of 100 requests of `/health` are answered within
`PULSE_LIMIT_S`, the server's memory stays in bounds, and a normal request succeeds while the attack is still on.
"""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from controlled_server import ControlledServer, controlled_server
from process_tree import peak_bytes
from server_process import HANG_GUARD_S, ServerProcess

MIB = 1024 * 1024

PULSE_LIMIT_S = 0.25
"""What 99 of 100 requests of `/health` may take. systemd's watchdog would give up only after many seconds."""


@dataclass(frozen=True, slots=True)
class Siege:
    """A server, and what normal clients do with it meanwhile; `url` is where the pulse is felt."""

    url: str
    process: ServerProcess
    serve: Callable[[], httpx.Response]

    def connect(self) -> socket.socket:
        """Open a raw connection, which gives up on a server that says nothing."""
        address = httpx.URL(self.url)
        return socket.create_connection((address.host, address.port or 0), timeout=HANG_GUARD_S)

    @contextmanager
    def watched(
        self, *, max_growth_bytes: int, serves: bool = True, kinds: Collection[str] = ("kept", "fresh")
    ) -> Iterator[None]:
        """Watch the server while the block attacks it. `serves` is False where the attack is to take every slot.

        `kinds` of pulses are those that must be answered: where the attack takes every connection there is, no fresh
        one can be opened.
        """
        pid = self.process.process.pid
        before = psutil.Process(pid).memory_info().rss
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak counts from here: proc(5)
        with pulse_of(self.url, pid) as pulses:
            yield
            answer = self.serve() if serves else None
        growth = peak_bytes(pid) - before
        assert answer is None or answer.status_code == 200, answer.text
        pulses = [pulse for pulse in pulses if pulse[0].partition(":")[0] in kinds]
        assert {said for said, _ in pulses} == {f"{kind}: 200" for kind in kinds}, _tally(pulses)
        took = sorted(took for _, took in pulses)
        assert took[int(len(took) * 0.99)] <= PULSE_LIMIT_S, f"the slowest of {len(took)} pulses: {took[-5:]}"
        assert growth <= max_growth_bytes, f"the server grew by {growth / MIB:.0f} MiB"


@contextmanager
def besieged(folder: Path, *flags: str, **config: object) -> Iterator[Siege]:
    """Serve the controlled models `tts` and `asr` to whoever attacks them; the configuration is as in a file."""
    with controlled_server(folder, parallel=False, flags=flags, **config) as server:
        yield siege_of(server)


def siege_of(server: ControlledServer) -> Siege:
    """Make a siege of a server that runs; a normal client has a word spoken."""
    return Siege(server.process.url, server.process, lambda: server.speak("hello"))


@contextmanager
def pulse_of(url: str, pid: int) -> Iterator[list[tuple[str, float]]]:
    """Feel a server's pulse during a block; the list holds each answer, with the seconds it took, once it has ended."""
    pulses: list[tuple[str, float]] = []
    command = [sys.executable, str(Path(__file__).with_name("siege_pulse.py")), url, str(pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "beats\n"
            yield pulses
            said, _ = process.communicate("stop\n", timeout=HANG_GUARD_S)
            pulses.extend((kind, took) for kind, took in json.loads(said))
        finally:
            process.kill()  # harmless to one that has ended


def send_all_that_fits(peer: socket.socket, data: bytes) -> None:
    """Send until the server has had enough: it may close, or answer and read no more."""
    with suppress(ConnectionError, TimeoutError):
        peer.sendall(data)


def read_answer(peer: socket.socket) -> tuple[int, dict[str, str | None]]:
    """Read a whole answer that is an error: its status, and the members of the error."""
    answer = http.client.HTTPResponse(peer)
    answer.begin()
    error: dict[str, str | None] = json.loads(answer.read())["error"]
    return answer.status, error


def head_of(method: str, path: str, *headers: str) -> bytes:
    """The head of a raw request."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def _tally(pulses: Sequence[tuple[str, float]]) -> dict[str, int]:
    answers = [said for said, _ in pulses]
    return {said: answers.count(said) for said in answers}
