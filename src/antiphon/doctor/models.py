"""The models root and the packages in it: whether they can be installed, and whether they are intact."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from antiphon.doctor.diagnosis import Diagnosis, fail, ok, warn
from antiphon.packages import Installer, PackageState, catalogue_of
from antiphon.vocabulary.errors import PackageError

_MIB = 1024 * 1024


def models_root(root: Path) -> Diagnosis:
    """Whether packages can be installed there. It makes a file that has no name, and leaves nothing."""
    subject = "models root"
    folder = next(it for it in (root, *root.parents) if it.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return warn(
            subject,
            f"{root} cannot be written: {error.strerror}",
            "models are served from there, and none can be installed: let the server's user write it, or name another"
            " folder (models_root, $ANTIPHON_MODELS_ROOT)",
        )
    said = f"{root}, {free_bytes / _MIB:,.0f} MiB free"
    return ok(subject, said if folder == root else f"{said}; it is made when it is first needed")


def packages(root: Path) -> Iterator[Diagnosis]:
    """Every installed package, each byte of it read."""
    installer = Installer(root)
    try:
        known = {package.id: package for package in catalogue_of(root).packages}
        installed = installer.installed()
    except PackageError as error:
        yield fail("packages", error.message, "mend or remove that file")
        return
    for package_id in installed:
        subject, install = f"package {package_id}", f"antiphon models install {package_id}"
        faults = installer.verify(package_id)
        if faults:
            yield fail(subject, "; ".join(faults), install if package_id in known else "install it anew")
        elif package_id in known and installer.state(known[package_id]) is PackageState.OUTDATED:
            yield warn(subject, "intact, and the catalogue has another version", install)
        else:
            yield ok(subject, "intact")
