"""The installed packages as models that a server can register; it reads manifests and no weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from antiphon.packages.installer import Installer
from antiphon.vocabulary.errors import PackageError
from antiphon.vocabulary.spec import DamagedModel
from antiphon.vocabulary.tasks import Mode, Task


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """One installed package; `path` is its folder, absolute."""

    id: str
    family: str
    task: Task
    mode: Mode
    path: Path


def installed_registrations(models_root: Path) -> list[InstalledModel]:
    """What a server without a configuration serves: every installed package, sorted by id.

    A package whose manifest is damaged is left out; `damaged_packages` names it.
    """
    return [found for found in _installed(models_root) if isinstance(found, InstalledModel)]


def damaged_packages(models_root: Path) -> list[DamagedModel]:
    """The installed packages whose manifests cannot be read, and why."""
    return [found for found in _installed(models_root) if isinstance(found, DamagedModel)]


def _installed(models_root: Path) -> Iterator[InstalledModel | DamagedModel]:
    installer = Installer(models_root)
    for package_id in installer.installed():
        try:
            manifest = installer.manifest(package_id)
        except PackageError as error:
            yield DamagedModel(package_id, error.message)
        else:
            path = installer.models_root / package_id
            yield InstalledModel(manifest.id, manifest.family, manifest.task, manifest.mode, path)
