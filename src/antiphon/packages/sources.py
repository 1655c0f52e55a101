"""Brings a wheel to a folder through pip, configured as its user configured it; it neither opens nor trusts the file.

pip runs as a process of its own: it has no interface for other programs
(https://pip.pypa.io/en/stable/user_guide/#using-pip-from-your-program). Index, proxy, certificates and credentials are
the user's: no option that says where to look is ever passed.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TextIO

from antiphon.packages.catalogue import WheelSource
from antiphon.vocabulary.errors import PackageError

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)\s*")
_UNREACHABLE = re.compile(r"connection|timed out|name resolution|could not fetch url", re.IGNORECASE)


class Fetch(Protocol):
    """Brings a source's wheel into an empty folder."""

    def __call__(self, source: WheelSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        """Return the wheel's path; `on_bytes` hears how many bytes have come. Raises PackageError."""
        ...


def download_wheel(source: WheelSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Have pip download exactly this version, without its dependencies, and return the wheel's path.

    pip keeps its own temporary files in `folder` too, so that whatever a killed download leaves behind is found there.
    """
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=raw", "--dest", str(folder)]
    command += [f"{source.name}=={source.version}"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        if _run(command, folder, complaints, on_bytes) != 0:
            complaints.seek(0)
            raise PackageError(_reason(source, folder, complaints.read()))
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise PackageError(f"pip brought {len(wheels)} wheels for {source.name} {source.version}, not one")
    return wheels[0]


def _run(command: list[str], folder: Path, complaints: TextIO, on_bytes: Callable[[int], None]) -> int:
    process = subprocess.Popen(  # noqa: S603 (the command is ours; names come from the catalogue's strict patterns)
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env={**os.environ, "TMPDIR": str(folder)},
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
    return process.returncode


def _reason(source: WheelSource, folder: Path, complaints: str) -> str:
    lines = [line.strip().replace(str(folder), ".") for line in complaints.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["nothing"])[-1]
    what = f"{source.name} {source.version}"
    if any(_UNREACHABLE.search(line) for line in lines):
        return f"cannot reach the package index to download {what}; pip said: {last}"
    return f"the package index cannot be reached or does not have {what}; pip said: {last}"
