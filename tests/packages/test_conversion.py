"""A package whose adapter loads other files than those that come: they are made once, at install, apart."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.packages import Installer, Manifest, Package, Phase, Progress
from antiphon.packages.catalogue import Part, parse_catalogue
from antiphon.packages.manifest import MANIFEST_NAME
from antiphon.vocabulary.errors import PackageError
from tiny_packages import package_file


@pytest.fixture
def converted(workshop) -> Package:
    """A model of the controlled family, which writes its `model.bin` backwards into another file."""
    return replace(workshop.package(), converted=("model.converted",))


def with_file(package: Package, shelf, path: str, content: bytes) -> Package:
    """The package with one more file, from a wheel of its own."""
    source = shelf.add("tiny-more", {"tiny_more/file": content})
    file = package_file(path, content, Part(source.name, "tiny_more/file"))
    return replace(package, sources=(*package.sources, source), files=(*package.files, file))


def entries(root: Path) -> list[str]:
    return sorted(entry.name for entry in root.iterdir() if entry.name != ".locks")


def test_source_and_result_are_there_and_recorded(workshop, models_root: Path, converted: Package) -> None:
    heard: list[Progress] = []
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(converted, heard.append)

    source, result = (folder / "model.bin").read_bytes(), (folder / "model.converted").read_bytes()
    assert result == source[::-1]
    recorded = {file["path"]: file for file in json.loads((folder / MANIFEST_NAME).read_bytes())["converted"]}
    digest = hashlib.sha256(result).hexdigest()
    assert recorded == {"model.converted": {"path": "model.converted", "sha256": digest, "size_bytes": len(result)}}
    assert installer.manifest(converted.id).is_of(converted)
    assert installer.verify(converted.id) == []
    phases = list(dict.fromkeys(progress.phase for progress in heard))
    assert phases[2:] == [Phase.EXTRACTING, Phase.CONVERTING, Phase.PUBLISHING, Phase.DONE]


def test_an_intact_result_is_not_made_again(workshop, models_root: Path, converted: Package) -> None:
    Installer(models_root, workshop.shelf.copy).install(converted)
    heard: list[Progress] = []
    Installer(models_root, workshop.shelf.copy).install(converted, heard.append)
    assert [progress.phase for progress in heard] == [Phase.CHECKING, Phase.DONE]


def test_a_changed_result_is_found_and_made_again(workshop, models_root: Path, converted: Package) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    made = installer.install(converted) / "model.converted"
    good = made.read_bytes()
    made.write_bytes(b"x" * len(good))
    assert installer.verify(converted.id) == ["model.converted has changed: its SHA-256 is not the recorded one"]
    installer.install(converted)
    assert made.read_bytes() == good


def test_a_package_that_has_come_to_need_a_conversion_is_outdated(
    workshop, models_root: Path, converted: Package
) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(replace(converted, converted=()))
    assert not installer.manifest(converted.id).is_of(converted)
    installer.install(converted)
    assert (folder / "model.converted").is_file()


@pytest.mark.parametrize(
    ("behaviour", "content", "reason"),
    [
        ("convert.fail", b"ConfigError", "could not convert what was downloaded: convert"),
        ("convert.fail", b"ZeroDivisionError", "could not convert what was downloaded: ZeroDivisionError"),
        ("convert.crash", b"SIGKILL", "could not convert what was downloaded: exit status -9"),
    ],
)
def test_a_conversion_that_fails_is_one_line_and_leaves_nothing(
    workshop, models_root: Path, converted: Package, behaviour: str, content: bytes, reason: str
) -> None:
    package = with_file(converted, workshop.shelf, behaviour, content)
    with pytest.raises(PackageError, match=reason) as refusal:
        Installer(models_root, workshop.shelf.copy).install(package)
    assert "\n" not in refusal.value.message
    assert str(models_root) not in refusal.value.message
    assert entries(models_root) == []


def test_a_conversion_that_does_not_make_its_file_is_refused(workshop, models_root: Path, converted: Package) -> None:
    package = replace(converted, converted=("model.converted", "other.file"))
    with pytest.raises(PackageError, match=r"the conversion made no other\.file"):
        Installer(models_root, workshop.shelf.copy).install(package)
    assert entries(models_root) == []


def test_a_family_that_converts_nothing_is_refused(workshop, models_root: Path, converted: Package) -> None:
    with pytest.raises(PackageError, match=r"the piper adapter could not convert .*: it converts nothing"):
        Installer(models_root, workshop.shelf.copy).install(replace(converted, family="piper"))


def test_a_manifest_from_before_conversions_is_still_read(workshop, models_root: Path) -> None:
    package = workshop.package()
    installer = Installer(models_root, workshop.shelf.copy)
    file = installer.install(package) / MANIFEST_NAME
    fields = json.loads(file.read_bytes())
    del fields["converted"]
    file.write_text(json.dumps(fields), encoding="utf-8")
    assert installer.manifest(package.id) == Manifest.of(package)


@pytest.mark.parametrize("path", ["../model", "model.bin"])
def test_a_result_outside_the_package_or_over_a_source_is_refused(workshop, as_catalogue, path: str) -> None:
    text = as_catalogue(workshop.package())
    with pytest.raises(PackageError, match=r"no path inside a package|appears twice"):
        parse_catalogue(text.replace("default = true", f'default = true\nconverted = ["{path}"]', 1))
