"""Packages of a fake hub's one repository, and the environment in which nothing else is known. It asserts nothing."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from antiphon.packages.catalogue import HubFile, HubSource, Package, PackageFile, Part, WheelSource
from fake_hub import FakeHub
from tiny_packages import package_file, tiny_package

REPOSITORY, REVISION = "someone/tiny-model", "0123456789abcdef0123456789abcdef01234567"


def know_only(hub: FakeHub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let huggingface_hub know of this hub alone, without a proxy or a token; what it keeps is in `home`."""
    for name in [name for name in os.environ if name.startswith("HF_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_HOME", str(home))


def package_of(
    files: Mapping[str, bytes], package_id: str = "tiny", revision: str = REVISION, repository: str = REPOSITORY
) -> Package:
    """A package of these files of the repository, each under the last part of its path."""
    package_files = tuple(_file(path, content, repository) for path, content in files.items())
    hub_files = tuple(
        HubFile(file.parts[0].member, f"{index}-{file.sha256}", file.sha256, file.size_bytes)
        for index, file in enumerate(package_files)
    )
    return tiny_package(package_id, (HubSource(repository, revision, hub_files),), package_files)


def catalogue_text(*packages: Package) -> str:
    """The packages as a catalogue file."""
    return "\n".join(line for package in packages for line in _lines(package)) + "\n"


def _lines(package: Package) -> list[str]:
    lines = ["[[package]]"]
    lines += [f"{key} = {json.dumps(getattr(package, key))}" for key in ("id", "summary", "family", "task", "mode")]
    lines += [f"licence = {json.dumps(package.licence)}", f"default = {json.dumps(package.default)}"]
    for source in package.sources:
        lines += ["[[package.source]]", f'uri = "{source.uri}"']
        lines += _content(source) if isinstance(source, WheelSource) else []
    for file in package.files:
        parts = ", ".join(f'{{ source = "{part.source}", member = "{part.member}" }}' for part in file.parts)
        lines += ["[[package.file]]", f'path = "{file.path}"', *_content(file), f"parts = [{parts}]"]
    return lines


def _content(named: WheelSource | PackageFile) -> list[str]:
    return [f'sha256 = "{named.sha256}"', f"size_bytes = {named.size_bytes}"]


def _file(path: str, content: bytes, repository: str) -> PackageFile:
    return package_file(path.rpartition("/")[2], content, Part(repository, path))
