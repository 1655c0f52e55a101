"""Has an adapter make the files that it loads out of those that a package brought; it knows no format.

The adapter runs in a process of its own: what it reads came from elsewhere, and its libraries are an engine's.
"""

import subprocess
import sys
from pathlib import Path
from typing import Protocol

from antiphon.vocabulary.errors import PackageError

CONVERSION_TIMEOUT_S = 1800.0
"""No conversion of a model that fits a machine takes so long. Units: seconds."""


class Convert(Protocol):
    """Has the family's adapter convert what is in the folder."""

    def __call__(self, family: str, folder: Path) -> None:
        """Return once its files are there. Raises PackageError."""
        ...


def convert_apart(family: str, folder: Path) -> None:
    """Run the adapter's `convert` in a fresh interpreter and wait for its end; it dies with this call."""
    command = [sys.executable, "-P", "-m", "antiphon.worker.conversion", family, str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 (the command is ours; the family comes from the catalogue)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=CONVERSION_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise PackageError(f"the {family} adapter took over {CONVERSION_TIMEOUT_S:g} s to convert") from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].replace(str(folder), ".") if lines else f"exit status {done.returncode}"
        raise PackageError(f"the {family} adapter could not convert what was downloaded: {reason}")
