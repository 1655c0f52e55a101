"""Kills an install with SIGKILL before its first audited step, then another before its second, until one survives.

Run as a program: CATALOGUE SHELF WORK [BEFORE]. Each attempt gets its own models root in WORK; with BEFORE, a models
root, a copy of that. One JSON line an attempt: the audited event, the packages then visible, and what a second install
made of the remains. A process of its own, because an audit hook cannot be taken back.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from antiphon.packages.catalogue import Package, WheelSource, parse_catalogue
from antiphon.packages.installer import Installer

_STEPS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")


def fetch_from(shelf: Path) -> Callable[[WheelSource, Path, Callable[[int], None]], Path]:
    """Fetch by copying: pip's own steps are not audited here."""

    def fetch(source: WheelSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        wheel = next(shelf.glob(f"{source.name.replace('-', '_')}-{source.version}-*.whl"))
        shutil.copyfile(wheel, folder / wheel.name)
        on_bytes(source.size_bytes)
        return folder / wheel.name

    return fetch


def visible(installer: Installer) -> list[list[object]]:
    """What a reader sees: each package with its sources and its faults."""
    return [[id_, installer.manifest(id_).sources, installer.verify(id_)] for id_ in installer.installed()]


def install_until(step: int, installer: Installer, package: Package, events: int) -> None:
    """Install in this process and die before audited step `step`; the last event's name goes to `events`."""
    seen = 0

    def audit(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        if not event.startswith(_STEPS):
            return
        seen += 1
        if seen == step:
            os.write(events, event.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)
    installer.install(package)


def attempt(step: int, installer: Installer, package: Package) -> str | None:
    """The event before which the install was killed; None when it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        install_until(step, installer, package, writing)
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as events:
        event = events.read().decode()
    if os.WIFSIGNALED(status):
        return event
    assert os.waitstatus_to_exitcode(status) == 0, "the install failed on its own"
    return None


def main(catalogue: Path, shelf: Path, work: Path, before: Path | None) -> None:
    """Print one line an attempt."""
    package = parse_catalogue(catalogue.read_text()).packages[0]
    step, event = 0, ""
    while event is not None:
        step += 1
        root = work / f"attempt-{step}"
        if before is not None:
            shutil.copytree(before, root)
        installer = Installer(root, fetch_from(shelf))
        event = attempt(step, installer, package)
        line = {"event": event, "visible": visible(installer)}
        installer.install(package)
        line["repaired"] = visible(installer)
        line["left"] = sorted(entry.name for entry in root.iterdir() if entry.name != ".locks")
        print(json.dumps(line))


if __name__ == "__main__":
    catalogue_path, shelf_path, work_path, *more = map(Path, sys.argv[1:])
    main(catalogue_path, shelf_path, work_path, more[0] if more else None)
