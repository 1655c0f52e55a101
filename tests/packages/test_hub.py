"""Packages of a model hub, installed through the real huggingface_hub from a small hub that runs here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.packages import Installer, Manifest, Phase, Progress, catalogue_of
from antiphon.packages.catalogue import Package
from antiphon.vocabulary.errors import PackageError
from fake_hub import FakeHub, serving
from hub_packages import REPOSITORY, REVISION, catalogue_text, know_only, package_of

WEIGHTS, CONFIG = bytes(range(256)) * 8000, b'{"rate": 16000}'
MIB = 1024 * 1024
TOKEN = "hf_a-very-secret-token"
NOT_SHOWN = (
    "the model hub shows no {}: it does not exist, or wants a token of somebody who may read it"
    " (HF_TOKEN, or `hf auth login`)"
)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that is all that huggingface_hub knows of."""
    with serving(FakeHub(REPOSITORY, REVISION, {"onnx/model.bin": WEIGHTS, "config.json": CONFIG})) as hub:
        know_only(hub, tmp_path / "hf", monkeypatch)
        yield hub


@pytest.fixture
def package() -> Package:
    return package_of({"onnx/model.bin": WEIGHTS, "config.json": CONFIG})


def left(root: Path) -> list[str]:
    """What lies in a models root beside packages."""
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0].startswith(".") and path.parts[0] != ".locks")


def refusal(installer: Installer, package: Package) -> str:
    with pytest.raises(PackageError) as caught:
        installer.install(package)
    assert "\n" not in caught.value.message
    assert "127.0.0.1" not in caught.value.message
    assert installer.installed() == []
    return caught.value.message


def test_a_package_is_downloaded_checked_and_recorded(hub: FakeHub, package: Package, models_root: Path) -> None:
    heard: list[Progress] = []
    folder = Installer(models_root).install(package, heard.append)

    assert (folder / "model.bin").read_bytes() == WEIGHTS
    assert (folder / "config.json").read_bytes() == CONFIG
    assert Installer(models_root).manifest("tiny") == Manifest.of(package)
    assert Manifest.of(package).sources == (f"hub:{REPOSITORY}@{REVISION}",)
    assert Installer(models_root).verify("tiny") == []
    assert left(models_root) == []
    counts = [it.done_bytes for it in heard if it.phase is Phase.DOWNLOADING]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, package.download_bytes)


def test_a_cut_connection_is_continued_where_it_broke(hub: FakeHub, package: Package, models_root: Path) -> None:
    hub.cut_at = MIB + 5

    folder = Installer(models_root).install(package)

    assert hub.ranges_of() == [None, f"bytes={MIB}-"]
    assert (folder / "model.bin").read_bytes() == WEIGHTS


def test_an_install_that_failed_half_way_is_continued_by_the_next(
    hub: FakeHub, package: Package, models_root: Path
) -> None:
    partial = models_root / ".downloads" / "tiny" / package.sources[0].files[0].name
    partial.parent.mkdir(parents=True)
    partial.write_bytes(WEIGHTS[:700_000])
    hub.cdn_status = 503
    message = refusal(Installer(models_root), package)
    assert message == f"the model hub answered 503 for onnx/model.bin of {REPOSITORY}"
    assert partial.read_bytes() == WEIGHTS[:700_000]

    hub.cdn_status = None
    folder = Installer(models_root).install(package)

    assert hub.ranges_of() == ["bytes=700000-", "bytes=700000-"]
    assert (folder / "model.bin").read_bytes() == WEIGHTS
    assert left(models_root) == []


def test_a_hub_that_knows_no_ranges_is_asked_for_all_of_it(hub: FakeHub, package: Package, models_root: Path) -> None:
    hub.ranges, hub.cut_at = False, 1_000_000

    folder = Installer(models_root).install(package)

    assert (folder / "model.bin").read_bytes() == WEIGHTS


@pytest.mark.parametrize("stale", [WEIGHTS + b"more", WEIGHTS[:-1] + b"x"], ids=["longer", "changed"])
def test_what_lies_there_and_is_not_the_file_is_not_used(
    hub: FakeHub, package: Package, models_root: Path, stale: bytes
) -> None:
    partial = models_root / ".downloads" / "tiny" / package.sources[0].files[0].name
    partial.parent.mkdir(parents=True)
    partial.write_bytes(stale)
    installer = Installer(models_root)
    if len(stale) == len(WEIGHTS):
        assert "is not the file that the catalogue names" in refusal(installer, package)

    assert (installer.install(package) / "model.bin").read_bytes() == WEIGHTS


@pytest.mark.parametrize("path", ["onnx/model.bin", "config.json"])
def test_a_file_of_another_hash_is_refused_and_not_kept(
    hub: FakeHub, package: Package, models_root: Path, path: str
) -> None:
    content = hub.files[path]
    hub.files[path] = content[:-1] + b"!"

    message = refusal(Installer(models_root), package)

    assert message.startswith(f"{path} of {REPOSITORY} is not ")
    assert not any(path.read_bytes().endswith(b"!") for path in models_root.rglob("*") if path.is_file())


def test_a_file_of_another_size_is_refused_before_it_is_downloaded(
    hub: FakeHub, package: Package, models_root: Path
) -> None:
    hub.files["onnx/model.bin"] += b"more"

    assert refusal(Installer(models_root), package) == f"onnx/model.bin of {REPOSITORY} is not what the catalogue names"
    assert hub.ranges_of() == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (package_of({"no/such.bin": WEIGHTS}), f"{REPOSITORY} has no file no/such.bin at commit {REVISION}"),
        (package_of({"config.json": CONFIG}, revision="f" * 40), f"{REPOSITORY} has no commit {'f' * 40}"),
        (package_of({"config.json": CONFIG}, repository="someone/else"), NOT_SHOWN.format("someone/else")),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(hub: FakeHub, models_root: Path, wanted: Package, message: str) -> None:
    assert refusal(Installer(models_root), wanted) == message
    assert left(models_root) == []


def test_a_hub_that_answers_with_another_commit_is_refused(hub: FakeHub, package: Package, models_root: Path) -> None:
    hub.told = "b" * 40

    assert "gives another commit" in refusal(Installer(models_root), package)


def test_without_the_token_that_is_wanted_it_is_refused(
    hub: FakeHub, package: Package, models_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = TOKEN
    monkeypatch.setenv("HF_TOKEN", "hf_another-secret")

    assert refusal(Installer(models_root), package) == NOT_SHOWN.format(REPOSITORY)


def test_the_users_token_opens_the_hub_and_never_reaches_the_cdn_or_a_log(
    hub: FakeHub,
    package: Package,
    models_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    hub.token, hub.cut_at = TOKEN, 1_000_000
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    folder = Installer(models_root).install(package)

    assert {it.token for it in hub.asked if it.place == "hub"} == {f"Bearer {TOKEN}"}
    assert {it.token for it in hub.asked if it.place == "cdn"} == {None}
    assert "".join(capfd.readouterr()) == ""
    assert not any(TOKEN.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_hub_out_of_reach_is_one_line(
    hub: FakeHub, package: Package, models_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")

    assert refusal(Installer(models_root), package) == (
        f"cannot reach the model hub for onnx/model.bin of {REPOSITORY} (ConnectError)"
    )


def test_a_proxy_is_used_and_its_password_is_not_told(
    hub: FakeHub, package: Package, models_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@127.0.0.1:1")

    message = refusal(Installer(models_root), package)

    assert "cannot reach the model hub" in message
    assert "secret" not in message
    assert hub.asked == []


def test_offline_nothing_is_asked(
    hub: FakeHub, package: Package, models_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    assert refusal(Installer(models_root), package) == f"cannot download {REPOSITORY}: HF_HUB_OFFLINE is set"
    assert hub.asked == []


def test_without_the_extra_the_error_says_what_to_install(
    package: Package, models_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert "pip install 'antiphon[hub]'" in refusal(Installer(models_root), package)


def test_remove_takes_what_an_unfinished_download_has_left(hub: FakeHub, package: Package, models_root: Path) -> None:
    partial = models_root / ".downloads" / "tiny" / "part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"half")

    Installer(models_root).remove("tiny")

    assert left(models_root) == []
    with pytest.raises(PackageError, match="not installed"):
        Installer(models_root).remove("tiny")


OWN = catalogue_text(package_of({"config.json": CONFIG}))


def own_catalogue(models_root: Path, text: str) -> Path:
    models_root.mkdir(exist_ok=True)
    (models_root / "catalogue.toml").write_text(text)
    return models_root


def test_a_models_root_may_have_a_catalogue_of_its_own(hub: FakeHub, models_root: Path) -> None:
    package = catalogue_of(own_catalogue(models_root, OWN)).find("tiny")

    assert package.download_bytes == package.size_bytes == len(CONFIG)
    assert (Installer(models_root).install(package) / "config.json").read_bytes() == CONFIG
    assert Installer(models_root).installed() == ["tiny"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('id = "tiny"', 'id = "piper-en-joe"', "id 'piper-en-joe' appears twice"),
        (REVISION, "main", "uri must be wheel:NAME==VERSION or hub:OWNER/NAME@COMMIT, the whole commit"),
        (REVISION, REVISION[:12], "uri must be"),
        (f"hub:{REPOSITORY}", "hub:justaname", "uri must be"),
        ('member = "config.json" }', 'member = "../config.json" }', "'../config.json' is no path inside a package"),
        (" }]", f' }}, {{ source = "{REPOSITORY}", member = "b" }}]', "must be one whole file of the hub"),
        ("[[package]]", "[[package]", "is not TOML"),
    ],
)
def test_a_catalogue_that_cannot_be_is_one_line_that_names_the_file(
    models_root: Path, old: str, new: str, fault: str
) -> None:
    with pytest.raises(PackageError) as caught:
        catalogue_of(own_catalogue(models_root, OWN.replace(old, new)))
    assert fault in caught.value.message


def test_without_one_the_catalogue_is_the_shipped_one(models_root: Path) -> None:
    assert catalogue_of(models_root).find("piper-en-joe").family == "piper"
