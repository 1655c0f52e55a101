"""Installs, removes and verifies packages in one models root, so that a reader sees a package whole or not at all.

Everything is built in a hidden staging folder inside the root and becomes visible by one rename. A process killed at
any moment leaves the old state or the new one, and at worst a staging folder, which the next install sweeps away, and
what had come from a hub, which the next install of the package goes on with.
A lock file a package, released by the kernel when its holder dies, keeps two installers of one package apart.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from antiphon.packages.catalogue import HubSource, Package, Source, checked_id
from antiphon.packages.conversion import Convert, convert_apart
from antiphon.packages.extraction import check_source, extract
from antiphon.packages.manifest import Manifest, is_package, read_manifest
from antiphon.packages.publication import exclusive, publish, sync
from antiphon.packages.sources import Fetch, fetch_source
from antiphon.vocabulary.errors import PackageError

_DOWNLOADS = ".downloads"
_LOCKS = ".locks"
_STAGING = ".staging-"


class Phase(StrEnum):
    """The steps of an install, in order; WAITING only when another process holds the package.

    CONVERTING only when its adapter loads other files than those that were downloaded.
    """

    WAITING = "waiting"
    CHECKING = "checking"
    DOWNLOADING = "downloading"
    EXTRACTING = "extracting"
    CONVERTING = "converting"
    PUBLISHING = "publishing"
    DONE = "done"


class PackageState(StrEnum):
    """How a package of the catalogue stands in a models root, as far as its manifest tells."""

    ABSENT = "absent"
    INSTALLED = "installed"
    OUTDATED = "outdated"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an install is. Units: bytes of the present phase; `total_bytes` 0 where a phase is not measured."""

    package_id: str
    phase: Phase
    done_bytes: int = 0
    total_bytes: int = 0


def _ignore(progress: Progress) -> None:
    """The default listener."""


class Installer:
    """The packages of one models root. Every method raises PackageError with one line fit for the user."""

    def __init__(self, models_root: Path, fetch: Fetch = fetch_source, convert: Convert = convert_apart) -> None:
        self.models_root = models_root.absolute()
        self._fetch = fetch
        self._convert = convert

    def install(self, package: Package, on_progress: Callable[[Progress], None] = _ignore) -> Path:
        """Bring the package into the root and return its folder.

        An intact install is kept; a damaged or outdated one is replaced. A second install of the same package waits
        for the first. `on_progress` is called on this thread; what it raises ends the install.
        """
        target = self.models_root / checked_id(package.id)

        def tell(phase: Phase, done_bytes: int = 0, total_bytes: int = 0) -> None:
            on_progress(Progress(package.id, phase, done_bytes, total_bytes))

        with self._owning(package.id, f"install {package.id}", lambda: tell(Phase.WAITING)):
            self._sweep(package.id)
            tell(Phase.CHECKING)
            if not _is_intact(package, target):
                if target.exists() and not is_package(target):
                    raise PackageError(f"{target} exists and is no package of antiphon's: move it away first")
                self._replace(package, target, tell)
        tell(Phase.DONE)
        return target

    def remove(self, package_id: str) -> None:
        """Take the package out of the root: at once for every reader, then from the disk.

        So is what an unfinished download has left; for that alone the package need not be installed.
        """
        downloads = self._downloads(package_id)
        if not self.has_remains(package_id):  # before the lock: a mistyped id creates nothing
            raise PackageError(f"{package_id} is not installed")
        with self._owning(package_id, f"remove {package_id}", lambda: None), self._staging(package_id) as staging:
            if downloads.exists():
                downloads.rename(staging / "downloads")
            if is_package(self.models_root / package_id):
                self._folder(package_id).rename(staging / "removed")
            sync(self.models_root)

    def sweep(self, package_id: str) -> None:
        """Delete what a killed install of the package has left, unless another one works on it."""
        with suppress(BlockingIOError, FileNotFoundError), exclusive(self._lock(package_id), _refuse_to_wait):
            self._sweep(package_id)

    def verify(self, package_id: str) -> list[str]:
        """Read every file of an installed package and name its faults; an empty list means intact."""
        folder = self._folder(package_id)
        try:
            return read_manifest(folder).faults(folder)
        except PackageError as error:
            return [error.message]

    def installed(self) -> list[str]:
        """The ids of the packages in the root, sorted, damaged ones included; a missing root has none."""
        if not self.models_root.is_dir():
            return []
        with _one_line("list the packages"):
            return sorted(entry.name for entry in self.models_root.iterdir() if _is_visible_package(entry))

    def state(self, package: Package) -> PackageState:
        """How the package stands here; `verify` reads its files, too."""
        folder = self.models_root / checked_id(package.id)
        if not is_package(folder):
            return PackageState.ABSENT
        try:
            current = read_manifest(folder).is_of(package)
        except PackageError:
            return PackageState.DAMAGED
        return PackageState.INSTALLED if current else PackageState.OUTDATED

    def has_remains(self, package_id: str) -> bool:
        """Whether there is anything that `remove` would take away."""
        return is_package(self.models_root / checked_id(package_id)) or self._downloads(package_id).exists()

    def manifest(self, package_id: str) -> Manifest:
        """What the installed package says of itself."""
        return read_manifest(self._folder(package_id))

    def _folder(self, package_id: str) -> Path:
        folder = self.models_root / checked_id(package_id)
        if not is_package(folder):
            raise PackageError(f"{package_id} is not installed")
        return folder

    @contextmanager
    def _owning(self, package_id: str, what: str, on_wait: Callable[[], None]) -> Iterator[None]:
        with _one_line(what):
            lock = self._lock(package_id)
            lock.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(lock, on_wait):
                yield

    def _lock(self, package_id: str) -> Path:
        return self.models_root / _LOCKS / checked_id(package_id)

    def _replace(self, package: Package, target: Path, tell: Callable[[Phase, int, int], None]) -> None:
        with self._staging(package.id) as staging:
            fetched = self._download(package, staging, tell)
            folder = staging / "package"
            folder.mkdir()
            written = 0

            def on_bytes(size_bytes: int) -> None:
                nonlocal written
                written += size_bytes
                tell(Phase.EXTRACTING, written, package.size_bytes)

            tell(Phase.EXTRACTING, 0, package.size_bytes)
            extract(package, fetched, folder, on_bytes)
            if package.converted:
                tell(Phase.CONVERTING, 0, 0)
                self._convert(package.family, folder)
            Manifest.of(package, folder).write(folder)
            tell(Phase.PUBLISHING, 0, 0)
            publish(folder, target, aside=staging / "replaced")
            shutil.rmtree(self._downloads(package.id), ignore_errors=True)

    def _download(self, package: Package, staging: Path, tell: Callable[[Phase, int, int], None]) -> dict[str, Path]:
        fetched: dict[str, Path] = {}
        before = 0
        for source in package.sources:
            tell(Phase.DOWNLOADING, before, package.download_bytes)
            folder = self._folder_for(source, package, staging / f"source-{len(fetched)}")

            def on_bytes(size_bytes: int, before: int = before) -> None:
                tell(Phase.DOWNLOADING, before + size_bytes, package.download_bytes)

            fetched[source.name] = self._fetch(source, folder, on_bytes)
            check_source(source, fetched[source.name])
            before += source.size_bytes
        tell(Phase.DOWNLOADING, before, package.download_bytes)
        return fetched

    def _folder_for(self, source: Source, package: Package, staged: Path) -> Path:
        """Where a source is downloaded to; what comes from a hub outlives this install if it does not end well."""
        folder = self._downloads(package.id) if isinstance(source, HubSource) else staged
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _downloads(self, package_id: str) -> Path:
        return self.models_root / _DOWNLOADS / checked_id(package_id)

    @contextmanager
    def _staging(self, package_id: str) -> Iterator[Path]:
        staging = Path(tempfile.mkdtemp(prefix=f"{_STAGING}{package_id}.", dir=self.models_root))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _sweep(self, owned_id: str) -> None:
        """Delete the staging folders whose installers are dead: those of packages that nobody holds the lock of."""
        for staging in self.models_root.glob(f"{_STAGING}*"):
            package_id = staging.name.removeprefix(_STAGING).partition(".")[0]
            if package_id == owned_id:
                shutil.rmtree(staging, ignore_errors=True)  # a dead installer's pip may still write into it
                continue
            try:
                with exclusive(self._lock(package_id), _refuse_to_wait):
                    shutil.rmtree(staging, ignore_errors=True)
            except (BlockingIOError, PackageError):
                continue


def _refuse_to_wait() -> None:
    raise BlockingIOError


def _is_visible_package(entry: Path) -> bool:
    return not entry.name.startswith(".") and is_package(entry)


def _is_intact(package: Package, target: Path) -> bool:
    try:
        manifest = read_manifest(target)
    except PackageError:
        return False
    return manifest.is_of(package) and not manifest.faults(target)


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PackageError(f"cannot {what}: {error.strerror or error}") from error
