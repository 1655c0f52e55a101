"""The process that downloads from a model hub: `python -m antiphon.packages.hub_process FOLDER`, the order on stdin.

It speaks as the hub's own library does, with the user's settings (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, proxies), but
keeps what a cut download brought: the library's own `hf_hub_download` begins each file anew in each process.
What went wrong is the last line of stderr that begins with "refused: "; it never holds an address or a token.
"""

import io
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from antiphon import __version__
from antiphon.packages.sources import REFUSED

MISSING = "packages of a model hub need the extra `hub`: pip install 'antiphon[hub]'"

_BLOCK_BYTES = 1024 * 1024
"""How much is written, and told of, at once; a cut loses less than that. The library would take ten times as much."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_HIDDEN = frozenset({401, 403})


class _Refusal(Exception):
    """The download cannot go on; the message is for the user."""


class _Growing(io.BufferedWriter):
    """A file that tells how long it is whenever it grows."""

    def __init__(self, path: Path, on_size: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(path, "ab"))
        self._on_size = on_size

    def write(self, block: Any) -> int:  # as io.BufferedWriter has it
        """Write, then tell."""
        count = super().write(block)
        self._on_size(self.tell())
        return count


def main(folder: Path) -> int:
    """Download what the order says; the exit code is 0 when all of it is there."""
    order = json.load(sys.stdin)
    before, total = 0, sum(file["size_bytes"] for file in order["files"])

    def tell(size_bytes: int) -> None:
        print(f"Progress {before + size_bytes} of {total}", flush=True)  # noqa: T201 (what our parent listens to)

    for file in order["files"]:
        try:
            _download(order, file, folder / file["name"], tell)
        except Exception as fault:  # noqa: BLE001 (whatever the library raises ends this process, in one line)
            print(f"{REFUSED}{_reason(order, file, fault)}", file=sys.stderr)  # noqa: T201
            return 1
        before += file["size_bytes"]
    return 0


def _download(order: Mapping[str, Any], file: Mapping[str, Any], target: Path, tell: Callable[[int], None]) -> None:
    try:
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented there
    except ImportError as fault:
        raise _Refusal(MISSING) from fault
    constants.DOWNLOAD_CHUNK_SIZE = _BLOCK_BYTES
    size_bytes = file["size_bytes"]
    url = hf_hub_url(order["repository"], file["path"], revision=order["revision"])
    told = get_hf_file_metadata(url, library_name="antiphon", library_version=__version__)
    if told.commit_hash != order["revision"]:
        raise _Refusal(f"the model hub gives another commit of {order['repository']} than {order['revision']}")
    if told.size not in (None, size_bytes) or (_SHA256.fullmatch(told.etag or "") and told.etag != file["sha256"]):
        raise _Refusal(f"{file['path']} of {order['repository']} is not what the catalogue names")
    headers = build_hf_headers(library_name="antiphon", library_version=__version__)
    headers["Accept-Encoding"] = "identity"  # a range of a compressed answer would be of no use
    with _Growing(target, tell) as stream:
        if stream.tell() > size_bytes:
            stream.seek(0)
            stream.truncate()
        tell(stream.tell())
        # The hub's address and not the one that it leads to: that one has an end, and no business with our token.
        http_get(url, stream, resume_size=stream.tell(), headers=headers, expected_size=size_bytes)


def _reason(order: Mapping[str, Any], file: Mapping[str, Any], fault: Exception) -> str:
    if isinstance(fault, _Refusal):
        return str(fault)
    from huggingface_hub import errors

    repository, path = order["repository"], file["path"]
    match fault:
        case errors.RemoteEntryNotFoundError():
            return f"{repository} has no file {path} at commit {order['revision']}"
        case errors.RevisionNotFoundError():
            return f"{repository} has no commit {order['revision']}"
        case errors.HfHubHTTPError() if isinstance(fault, errors.RepositoryNotFoundError) or _status(fault) in _HIDDEN:
            return (
                f"the model hub shows no {repository}: it does not exist, or wants a token of somebody who may read it"
                " (HF_TOKEN, or `hf auth login`)"
            )
        case errors.HfHubHTTPError():
            return f"the model hub answered {_status(fault)} for {path} of {repository}"
        case errors.OfflineModeIsEnabled():
            return f"cannot download {repository}: HF_HUB_OFFLINE is set"
        case OSError(strerror=str(strerror)):
            return f"cannot download {path} of {repository}: {strerror}"
        case OSError():  # the library's own word for a body that is too short or too long
            return f"{path} of {repository} did not come whole"
        case _:
            return f"cannot reach the model hub for {path} of {repository} ({type(fault).__name__})"


def _status(fault: Any) -> int:  # HfHubHTTPError, whose response is another library's
    return int(fault.response.status_code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
