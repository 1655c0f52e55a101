"""What an installed package says of itself: the file that makes a folder a package. It installs nothing.

The format is JSON, one object: id, family, task, mode, licence, sources (URIs), files (path, sha256, size_bytes), and
converted, which lists files likewise.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from antiphon.packages.catalogue import Package, checked_id, checked_path, checked_sha256, mode_of, task_of
from antiphon.packages.tables import Table
from antiphon.vocabulary.errors import PackageError
from antiphon.vocabulary.tasks import Mode, Task

MANIFEST_NAME = "antiphon-package.json"

MAX_MANIFEST_BYTES = 4 * 1024 * 1024
"""Room for some 20,000 files; another file that is there instead is not read to its end."""


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """One file as it must be; `path` is relative to the package's folder."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """An installed package; equal manifests promise equal files.

    `files` came from the sources as they are, `converted` are what the adapter made of them.
    """

    id: str
    family: str
    task: Task
    mode: Mode
    licence: str
    sources: tuple[str, ...]
    files: tuple[InstalledFile, ...]
    converted: tuple[InstalledFile, ...] = ()

    @classmethod
    def of(cls, package: Package, folder: Path | None = None) -> Self:
        """The manifest that an install of `package` writes; `folder` has its converted files where there are some.

        Raises PackageError for one that the conversion did not make.
        """
        return cls(
            id=package.id,
            family=package.family,
            task=package.task,
            mode=package.mode,
            licence=package.licence,
            sources=tuple(source.uri for source in package.sources),
            files=tuple(InstalledFile(file.path, file.sha256, file.size_bytes) for file in package.files),
            converted=() if folder is None else tuple(_made(path, folder / path) for path in package.converted),
        )

    def is_of(self, package: Package) -> bool:
        """Whether an install of `package` as it is now would write this; what a conversion makes, none can foretell."""
        made = tuple(file.path for file in self.converted)
        return made == package.converted and replace(self, converted=()) == Manifest.of(package)

    def write(self, folder: Path) -> None:
        """Make `folder` this package and flush the manifest to the disk; the files are there already."""
        with (folder / MANIFEST_NAME).open("x", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(self), indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def faults(self, folder: Path) -> list[str]:
        """Read every file in `folder` and name each that is missing or changed; an empty list means intact."""
        return [
            fault for file in (*self.files, *self.converted) if (fault := _fault(file, folder / file.path)) is not None
        ]


def is_package(folder: Path) -> bool:
    """Whether antiphon installed this folder, in whatever shape it is now."""
    return (folder / MANIFEST_NAME).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of the package in `folder`; raises PackageError when it is damaged or another package's."""
    name = f"{folder.name}: {MANIFEST_NAME}"
    try:
        with (folder / MANIFEST_NAME).open("rb") as stream:
            content = stream.read(MAX_MANIFEST_BYTES + 1)
        if len(content) > MAX_MANIFEST_BYTES:
            raise PackageError(f"{name} is larger than {MAX_MANIFEST_BYTES} bytes")
        table = Table.of(name, json.loads(content))
    except OSError as error:
        raise PackageError(f"{name} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise PackageError(f"{name} is damaged: it is nested too deeply") from error
    except ValueError as error:
        raise PackageError(f"{name} is damaged") from error
    manifest = Manifest(
        id=checked_id(table.text("id")),
        family=table.text("family"),
        task=task_of(table),
        mode=mode_of(table),
        licence=table.text("licence"),
        sources=table.texts("sources"),
        files=tuple(_file(file) for file in table.tables("files")),
        converted=tuple(_file(file) for file in table.tables("converted")) if table.fields.get("converted") else (),
    )
    if manifest.id != folder.name:
        raise PackageError(f"{name} belongs to package {manifest.id}")
    return manifest


def _file(table: Table) -> InstalledFile:
    return InstalledFile(checked_path(table.text("path")), checked_sha256(table), table.size("size_bytes"))


def _made(path: str, file: Path) -> InstalledFile:
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
    except FileNotFoundError as error:
        raise PackageError(f"the conversion made no {path}") from error
    return InstalledFile(path, digest, file.stat().st_size)


def _fault(file: InstalledFile, path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            size_bytes = path.stat().st_size
            if size_bytes != file.size_bytes:
                return f"{file.path} has {size_bytes} bytes, not {file.size_bytes}"
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return f"{file.path} is missing"
    except OSError as error:
        return f"{file.path} cannot be read: {error.strerror}"
    return None if digest == file.sha256 else f"{file.path} has changed: its SHA-256 is not the recorded one"
