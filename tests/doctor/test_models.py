"""What the doctor says of the models root and of the packages in it: on real folders, with real damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.doctor.diagnosis import Health
from antiphon.doctor.models import models_root, packages
from antiphon.packages.catalogue import Part, WheelSource
from antiphon.packages.manifest import Manifest
from tiny_packages import package_file, tiny_package

OK, WARN, FAIL = Health


@pytest.fixture
def install(tmp_path) -> Callable[[str], Path]:
    """Puts a package whose one file holds "abc" into a models root, which it returns."""

    def put(package_id: str) -> Path:
        file = package_file("model.bin", b"abc", Part("tiny", "model.bin"))
        package = tiny_package(package_id, (WheelSource("tiny", "1.0", "0" * 64, 1),), (file,))
        folder = tmp_path / "models" / package_id
        folder.mkdir(parents=True)
        (folder / "model.bin").write_bytes(b"abc")
        Manifest.of(package, folder).write(folder)
        return folder.parent

    return put


def test_a_models_root_that_can_be_written_is_in_order_and_left_as_it_was(tmp_path):
    found = models_root(tmp_path)

    assert found.health is OK
    assert found.said.startswith(f"{tmp_path}, ")
    assert list(tmp_path.iterdir()) == []


def test_a_models_root_that_is_not_there_yet_is_in_order_and_not_made(tmp_path):
    found = models_root(tmp_path / "later" / "models")

    assert (found.health, list(tmp_path.iterdir())) == (OK, [])
    assert found.said.endswith("it is made when it is first needed")


def test_a_models_root_that_cannot_be_made_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")

    found = models_root(tmp_path / "file" / "models")
    assert (found.health, found.said) == (WARN, f"{tmp_path}/file/models cannot be written: Not a directory")
    assert "models_root" in found.advice


def test_a_root_without_packages_has_nothing_to_tell_of(tmp_path):
    assert list(packages(tmp_path / "none")) == []


def test_an_intact_package_is_in_order(install):
    (found,) = packages(install("tiny"))

    assert (found.subject, found.health, found.said) == ("package tiny", OK, "intact")


@pytest.mark.parametrize(
    ("package_id", "advice"),
    [("tiny", "install it anew"), ("silero-vad", "antiphon models install silero-vad")],
    ids=["unknown", "of the catalogue"],
)
def test_a_package_with_a_flipped_byte_is_a_fault(install, package_id, advice):
    root = install(package_id)
    (root / package_id / "model.bin").write_bytes(b"abd")

    (found,) = packages(root)
    assert (found.health, found.advice) == (FAIL, advice)
    assert "model.bin" in found.said


def test_a_package_that_is_not_the_catalogues_any_more_is_a_warning(install):
    (found,) = packages(install("silero-vad"))

    assert (found.health, found.advice) == (WARN, "antiphon models install silero-vad")


def test_a_catalogue_of_ones_own_that_is_broken_is_a_fault(tmp_path):
    (tmp_path / "catalogue.toml").write_text("package = 1")

    (found,) = packages(tmp_path)
    assert found.health is FAIL
    assert "catalogue.toml" in found.said
