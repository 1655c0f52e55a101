"""The process of one change to a models root: `python -m antiphon.worker.package PARENT VERB ROOT ID`.

VERB is install, remove, or sweep: to delete what a killed install has left. Each line of stdout is a JSON object:
`phase`, `done_bytes` and `total_bytes` of a progress, or at last the `error` that the change ended in.
"""

import json
import sys
from pathlib import Path

from antiphon.packages import Installer, Progress, catalogue_of
from antiphon.vocabulary.errors import PackageError
from antiphon.worker.lifeline import tie_to


def main(verb: str, root: Path, package_id: str) -> None:
    """Carry it out."""
    installer = Installer(root)
    try:
        match verb:
            case "install":
                installer.install(catalogue_of(installer.models_root).find(package_id), _tell)
            case "remove":
                installer.remove(package_id)
            case _:
                installer.sweep(package_id)
    except PackageError as fault:
        _say({"error": fault.message})


def _tell(progress: Progress) -> None:
    _say({"phase": progress.phase, "done_bytes": progress.done_bytes, "total_bytes": progress.total_bytes})


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)  # noqa: T201 (what the server listens to)


if __name__ == "__main__":
    tie_to(int(sys.argv[1]))
    main(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
