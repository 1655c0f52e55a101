"""A downloading program as a process of its own: its progress is heard, its last words are kept. It knows no source."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)\s*")


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended; `complaints` is all that it wrote to stderr."""

    succeeded: bool
    complaints: str


def run_downloader(
    command: Sequence[str],
    folder: Path,
    on_bytes: Callable[[int], None],
    *,
    order: str = "",
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the command to its end; `on_bytes` hears each line "Progress DONE of TOTAL" of its stdout.

    `order` is what it reads from stdin, `folder` is where its temporary files go. What `on_bytes` raises kills it.
    """
    with tempfile.TemporaryFile("w+b") as complaints, tempfile.TemporaryFile("w+b") as said:
        said.write(order.encode())
        said.seek(0)
        process = subprocess.Popen(  # noqa: S603 (the command is ours; names come from the catalogue's strict patterns)
            command,
            stdin=said,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, "TMPDIR": str(folder), **(env or {})},
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        with process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if match := _PROGRESS.fullmatch(line):
                        on_bytes(int(match[1]))
            except BaseException:
                process.kill()
                raise
        complaints.seek(0)
        return Ended(process.returncode == 0, complaints.read().decode("utf-8", "replace"))
