"""The installed packages as models that a server can register; it reads manifests and no weights."""

from dataclasses import dataclass
from pathlib import Path

from antiphon.packages.installer import Installer
from antiphon.vocabulary.errors import PackageError
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

    A package whose manifest is damaged is left out; `antiphon models verify` names it.
    """
    installer = Installer(models_root)
    models = []
    for package_id in installer.installed():
        try:
            manifest = installer.manifest(package_id)
        except PackageError:
            continue
        path = installer.models_root / package_id
        models.append(InstalledModel(manifest.id, manifest.family, manifest.task, manifest.mode, path))
    return models
