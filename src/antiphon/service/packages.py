"""Model packages as clients manage them: what there is, what is being installed, and what may be removed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from antiphon.packages import (
    Catalogue,
    Installer,
    Installs,
    InstallView,
    Manifest,
    Package,
    PackageProcess,
    PackageState,
    Verb,
    catalogue_of,
)
from antiphon.runtime.api import Runtime
from antiphon.service.models_root import ModelsRoot
from antiphon.vocabulary.errors import InvalidRequest, PackageError, PackageNotFound
from antiphon.vocabulary.tasks import Mode, Task


@dataclass(frozen=True, slots=True)
class PackageView:
    """A package of the catalogue, or one that is installed and in no catalogue: that has no summary.

    Units: bytes. `path` is where it is installed. `install` is there while one is queued or runs, `error` is what the
    last one ended in.
    """

    id: str
    summary: str | None
    family: str
    task: Task
    mode: Mode
    licence: str
    size_bytes: int
    download_bytes: int
    state: PackageState
    path: Path | None
    install: InstallView | None
    error: str | None


class PackageService:
    """Manages the packages of one models root, in processes where that takes time. Who may is not asked here."""

    def __init__(self, root: ModelsRoot, runtime: Runtime) -> None:
        self._root = root
        self._runtime = runtime
        self._installs = Installs()

    @property
    def root(self) -> Path:
        """The folder that packages are installed in, absolute."""
        return self._root.path

    def packages(self) -> list[PackageView]:
        """The catalogue's packages in its order, then the installed ones that are in none."""
        installer = self._root.installer
        catalogue = catalogue_of(installer.models_root)
        listed = [self._of_catalogue(package, installer) for package in catalogue.packages]
        return [*listed, *self._strangers(catalogue, installer)]

    def package(self, package_id: str) -> PackageView:
        """One of them; raises PackageNotFound."""
        for view in self.packages():
            if view.id == package_id:
                return view
        raise _not_found(package_id)

    def foresee_install(self, package_id: str) -> PackageView:
        """Raise what `install` would, and tell how the package is now."""
        self._in_catalogue(package_id)
        self._installs.require_room(package_id)
        return self.package(package_id)

    def install(self, package_id: str) -> PackageView:
        """Begin to install a package, or queue it; one that is queued or runs already goes on.

        Raises PackageNotFound, and ServerBusy for a full queue.
        """
        package = self._in_catalogue(package_id)
        self._installs.begin(package, self._root.path)
        return self.package(package_id)

    async def stop(self, package_id: str) -> PackageView:
        """End the install of a package, and tell how it is then; harmless where there is none."""
        self.package(package_id)
        await self._installs.stop(package_id)
        return self.package(package_id)

    def foresee_remove(self, package_id: str) -> PackageView:
        """Raise what `remove` would, and tell how the package is now.

        Raises InvalidRequest while it is being installed, where it is not installed, and while a model uses its files.
        """
        view = self.package(package_id)
        if view.install is not None:
            raise InvalidRequest(f"{package_id} is being installed; stop that first", param="id")
        if not self._root.installer.has_remains(package_id):
            raise InvalidRequest(f"{package_id} is not installed", param="id")
        if (model_id := self._user_of(package_id)) is not None:
            raise InvalidRequest(f"the model {model_id!r} is registered with the files of {package_id}", param="id")
        return view

    async def remove(self, package_id: str) -> PackageView:
        """Remove a package, and what an unfinished download of it has left."""
        self.foresee_remove(package_id)
        await PackageProcess(Verb.REMOVE, self._root.path, package_id).run()
        self._installs.forget(package_id)
        return self.package(package_id)

    def foresee_root(self, path: str) -> Path:
        """Tell which folder `replace_root` would use, and raise what it would."""
        self._require_idle()
        return self._root.foresee(path)

    def replace_root(self, path: str) -> Path:
        """Use another folder; an install belongs to one, so none may be under way. Raises InvalidRequest."""
        self._require_idle()
        self._root.replace(path)
        self._installs.forget()
        return self._root.path

    async def close(self) -> None:
        """End every install at once: it can be asked for again, and goes on where its download broke."""
        await self._installs.close()

    def _require_idle(self) -> None:
        for package_id in self._installs.under_way:
            raise InvalidRequest(f"{package_id} is being installed here; stop that first", param="path")

    def _in_catalogue(self, package_id: str) -> Package:
        for package in catalogue_of(self._root.path).packages:
            if package.id == package_id:
                return package
        raise _not_found(package_id)

    def _user_of(self, package_id: str) -> str | None:
        """A model that is registered with the package's folder, or something in it."""
        folder = (self._root.path / package_id).resolve()
        specs = (view.registration.spec for view in self._runtime.views())
        return next((spec.id for spec in specs if Path(spec.path).resolve().is_relative_to(folder)), None)

    def _of_catalogue(self, package: Package, installer: Installer) -> PackageView:
        state = installer.state(package)
        return PackageView(
            id=package.id,
            summary=package.summary,
            family=package.family,
            task=package.task,
            mode=package.mode,
            licence=package.licence,
            size_bytes=package.size_bytes,
            download_bytes=package.download_bytes,
            state=state,
            path=None if state is PackageState.ABSENT else installer.models_root / package.id,
            install=self._installs.under_way.get(package.id),
            error=self._installs.errors.get(package.id),
        )

    def _strangers(self, catalogue: Catalogue, installer: Installer) -> Iterator[PackageView]:
        known = {package.id for package in catalogue.packages}
        for package_id in installer.installed():
            if package_id in known:
                continue
            try:
                manifest = installer.manifest(package_id)
            except PackageError:
                continue  # `antiphon models verify` names it
            yield _stranger(manifest, installer.models_root / package_id)


def _stranger(manifest: Manifest, path: Path) -> PackageView:
    return PackageView(
        id=manifest.id,
        summary=None,
        family=manifest.family,
        task=manifest.task,
        mode=manifest.mode,
        licence=manifest.licence,
        size_bytes=sum(file.size_bytes for file in manifest.files),
        download_bytes=0,
        state=PackageState.INSTALLED,
        path=path,
        install=None,
        error=None,
    )


def _not_found(package_id: str) -> PackageNotFound:
    return PackageNotFound(f"there is no package {package_id[:80]!r}", param="id")
