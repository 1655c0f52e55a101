"""Packages of the controlled family: of what they hold the test says where it comes from. Nothing is written here."""

import hashlib
from collections.abc import Sequence

from antiphon.packages.catalogue import Package, PackageFile, Part, Source
from antiphon.vocabulary.tasks import Mode, Task


def tiny_package(
    package_id: str, sources: Sequence[Source], files: Sequence[PackageFile], *, default: bool = False
) -> Package:
    """A voice of these files."""
    return Package(
        id=package_id,
        summary="a voice",
        family="controlled",
        task=Task.TTS,
        mode=Mode.OFFLINE,
        licence="CC0",
        default=default,
        sources=tuple(sources),
        files=tuple(files),
    )


def package_file(path: str, content: bytes, *parts: Part) -> PackageFile:
    """A file that is to hold this, made of these parts."""
    return PackageFile(path, hashlib.sha256(content).hexdigest(), len(content), parts)
