"""A models root with packages as far as a start looks at them, and a server of all that can be served of it."""

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

from antiphon.packages.manifest import MANIFEST_NAME
from server_process import ANTIPHON, HANG_GUARD_S, LISTENING

DEEP = "[" * 200_000


def package(root: Path, package_id: str, family: str = "controlled") -> Path:
    """A package that is installed, as far as a start looks at it; its folder."""
    folder = root / package_id
    folder.mkdir(parents=True)
    file = {"path": "model", "sha256": "0" * 64, "size_bytes": 0}
    told = {"id": package_id, "family": family, "task": "tts", "mode": "offline", "licence": "CC0"}
    (folder / MANIFEST_NAME).write_text(json.dumps({**told, "sources": ["wheel:x==1"], "files": [file]}))
    return folder


@contextmanager
def served(root: Path):
    """A server of every installed model; its URL, and what it had said when it began to listen."""
    command = [
        str(ANTIPHON),
        "serve",
        "--models-root",
        str(root),
        "--port",
        "0",
        "--isolation",
        "thread",
        "--lazy-load",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                if line.startswith(LISTENING):
                    break
            assert said[-1].startswith(LISTENING), said
            yield said[-1].removeprefix(LISTENING).strip(), "".join(said)
        finally:
            process.terminate()
            process.communicate(timeout=HANG_GUARD_S)
