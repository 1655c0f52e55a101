"""Real `antiphon` processes for tests: a server on a free port, and one-shot commands. It asserts how they end."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from server_nursery import shared_nursery

ANTIPHON = Path(sys.executable).with_name("antiphon")
LISTENING = "antiphon is listening on "
HANG_GUARD_S = 60.0
"""Nothing that these processes do takes this long unless it hangs. Units: seconds."""

HELD_GUARD_S = 600.0
"""The client's time limit for a call that a test keeps open on purpose.

It must outlast everything that the test does meanwhile on a busy machine, or the client leaves and the queue under test
is gone. Waiting for the result has its own, shorter limit. Units: seconds.
"""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that listens. `temp` is its own folder for temporary files, `log` is where its stderr goes."""

    url: str
    process: subprocess.Popen[str]
    folder: Path
    temp: Path
    log: Path

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a stop signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(HANG_GUARD_S)


@contextmanager
def running_server(
    folder: Path,
    config: Mapping[str, object],
    *flags: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    start: Callable[..., subprocess.Popen[str]] | None = None,
    launcher: Sequence[str] = (),
) -> Iterator[ServerProcess]:
    """Run `antiphon serve` with this configuration until the block ends; it must then leave with the exit code 0.

    The configuration is written into `folder`, where relative paths in it start; the port is any free one, engines run
    in threads unless it says otherwise, and `cwd` is the working folder if that is not `folder`. The server is forked
    from the nursery unless `start` is `started_alone`, which costs a second of CPU. `launcher` is a command that runs
    the server, which is then its child. The block may stop the server itself. Raises AssertionError, with what the
    server said, when it does not come to listen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file, log, temp = folder / "server.json", folder / "server.log", folder / "temp"
    file.write_text(json.dumps({"port": 0, "isolation": "thread", **config}), encoding="utf-8")
    temp.mkdir(exist_ok=True)
    command = [*launcher, str(ANTIPHON), "serve", "--config", str(file), *flags]
    environment = {**os.environ, "TMPDIR": str(temp), **(env or {})}
    if start is None:
        start = started_alone if launcher else shared_nursery().start
    with start(command, cwd=cwd or folder, env=environment) as process:
        assert process.stderr is not None
        hang_guard = threading.Timer(HANG_GUARD_S, process.kill)
        hang_guard.start()
        try:
            url, drain = _await_listening(process.stderr, log)
        finally:
            hang_guard.cancel()
            if sys.exc_info()[0] is not None:
                process.kill()
        server = ServerProcess(url, process, folder, temp, log)
        try:
            yield server
            if process.poll() is None:
                server.stop()
        finally:
            process.kill()  # harmless to one that has ended
            process.wait()
            drain.join()
    assert process.returncode == 0, f"exit code {process.returncode}:\n{log.read_text()}"


def started_alone(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start the command as a user does: an interpreter of its own, its own imports, nothing shared."""
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env)


def antiphon(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [str(ANTIPHON), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=HANG_GUARD_S,
        check=False,
    )


def error_lines(output: str) -> Sequence[str]:
    """What a command said on stderr, without its log."""
    return [line for line in output.splitlines() if line.startswith("antiphon: ")]


def _await_listening(stderr: IO[str], log: Path) -> tuple[str, threading.Thread]:
    """Read until the server says where it listens; a thread copies what follows into `log`."""
    said: list[str] = []
    for line in stderr:
        said.append(line)
        if line.startswith(LISTENING):
            log.write_text("".join(said))
            drain = threading.Thread(target=_copy, args=(stderr, log), daemon=True)
            drain.start()
            return line.removeprefix(LISTENING).strip(), drain
    raise AssertionError("the server did not come to listen:\n" + "".join(said))


def _copy(stderr: IO[str], log: Path) -> None:
    with log.open("a") as file:
        for line in stderr:
            file.write(line)
            file.flush()
