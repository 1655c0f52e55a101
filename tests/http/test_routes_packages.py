"""`/v1/ui/packages` over real sockets: a server that installs from a hub, and that is stopped while it does."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from antiphon.packages import Installer
from conformance_client import eventually
from controlled_server import controlled_server
from fake_hub import FakeHub, serving
from hub_packages import REPOSITORY, REVISION, catalogue_text, know_only, package_of
from refusals import assert_refused
from server_process import HANG_GUARD_S

LOAD, PACKAGES = "/v1/models/load", "/v1/ui/packages"
FILES = {"model.bin": bytes(4 * 1024 * 1024), "config.json": b'{"rate": 16000}'}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeHub]:
    with serving(FakeHub(REPOSITORY, REVISION, FILES)) as hub, pytest.MonkeyPatch.context() as monkeypatch:
        know_only(hub, tmp_path_factory.mktemp("hf"), monkeypatch)
        yield hub


def catalogue_in(folder: Path) -> Path:
    """A models root with the packages `big` and `small`."""
    packages = [
        package_of({path: FILES[path]}, name) for name, path in (("big", "model.bin"), ("small", "config.json"))
    ]
    (folder / "root").mkdir()
    (folder / "root" / "catalogue.toml").write_text(catalogue_text(*packages))
    return folder / "root"


@pytest.fixture(scope="module")
def installing(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory):
    """A server that its clients may manage."""
    folder = tmp_path_factory.mktemp("packages")
    catalogue_in(folder)
    with controlled_server(folder, parallel=True, ui_management=True, models_root="root") as server:
        yield server


def ask(server, verb: str, package_id: str, **fields: object):
    return server.client.post(f"{PACKAGES}/{verb}", json={"id": package_id, **fields})


def status(server, package_id: str) -> dict:
    return server.client.get(f"{PACKAGES}/{package_id}/status").json()


def settled(server, package_id: str) -> dict:
    """The package when its install has ended; each look is a whole request."""
    return eventually(lambda: status(server, package_id), lambda it: it["progress"] is None, "the end of the install")


@pytest.fixture
def held_hub(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub, which holds the second half of what it sends back until the test has ended."""
    hub.half_sent.clear()
    hub.held = threading.Event()
    yield hub
    hub.held.set()
    hub.held = None


@pytest.fixture
def half(installing, held_hub: FakeHub):
    """The server, with the first half of `big` there and the second held back."""
    assert ask(installing, "install", "big").status_code == 202
    assert held_hub.half_sent.wait(HANG_GUARD_S)
    yield installing
    assert ask(installing, "stop", "big").json()["progress"] is None
    ask(installing, "remove", "big")


def test_the_packages_are_listed_as_they_stand(installing):
    listed = installing.client.get(PACKAGES).json()

    assert [it["id"] for it in listed][-2:] == ["big", "small"]
    assert listed[-1] == {
        "id": "small",
        "summary": "a voice",
        "family": "controlled",
        "task": "tts",
        "mode": "offline",
        "licence": "CC0",
        "size_bytes": 15,
        "download_bytes": 15,
        "state": "absent",
        "installed": False,
        "path": None,
        "phase": None,
        "progress": None,
        "error": None,
    }
    assert status(installing, "small") == listed[-1]


def test_an_install_is_accepted_and_done_in_the_background(half, held_hub):
    again = ask(half, "install", "big")

    assert (again.status_code, again.json()["phase"]) == (202, "downloading")
    assert half.speak("while it downloads").status_code == 200
    held_hub.held.set()
    done = settled(half, "big")
    assert (done["installed"], done["state"], done["error"]) == (True, "installed", None)
    assert Path(done["path"]).joinpath("model.bin").read_bytes() == FILES["model.bin"]


def test_an_install_is_stopped(half):
    stopped = ask(half, "stop", "big")

    assert (stopped.status_code, stopped.json()["installed"], stopped.json()["progress"]) == (200, False, None)


def test_a_package_is_removed_unless_a_model_has_its_files(installing):
    ask(installing, "install", "small")
    path = settled(installing, "small")["path"]
    fields = {"id": "mine", "family": "controlled", "task": "tts", "path": path}
    assert installing.client.post(LOAD, json=fields).status_code == 200

    assert "'mine'" in assert_refused(ask(installing, "remove", "small"), 400, param="id").message

    elsewhere = str(installing.checkpoints["tts"].path)
    assert installing.client.post(LOAD, json={**fields, "path": elsewhere}).status_code == 200
    assert ask(installing, "remove", "small").json()["installed"] is False
    assert_refused(ask(installing, "remove", "small"), 400, param="id")


@pytest.mark.parametrize("verb", ["install", "stop", "remove"])
def test_an_unknown_package_is_not_found(installing, verb):
    assert_refused(ask(installing, verb, "nobody"), 404, param="id", code="package_not_found")
    assert_refused(ask(installing, verb, "nobody", dry_run=True), 404, param="id", code="package_not_found")


def test_the_status_of_an_unknown_package_is_not_found(installing):
    answer = installing.client.get(f"{PACKAGES}/..%2F..%2Fetc/status")
    assert_refused(answer, 404, code="not_found")
    assert_refused(installing.client.get(f"{PACKAGES}/nobody/status"), 404, param="id", code="package_not_found")


@pytest.mark.parametrize("verb", ["install", "stop", "remove"])
@pytest.mark.parametrize("body", [{}, {"id": 7}, {"id": None}])
def test_a_body_without_an_id_is_refused(installing, verb, body):
    assert_refused(installing.client.post(f"{PACKAGES}/{verb}", json=body), 400, param="id")


def test_a_dry_run_does_nothing(half):
    before = status(half, "small")
    told = ask(half, "install", "small", dry_run=True)

    assert (told.status_code, told.json()["dry_run"], told.json()["package"]) == (200, True, before)
    assert ask(half, "stop", "big", dry_run=True).json()["package"]["phase"] == "downloading"
    assert_refused(ask(half, "remove", "big", dry_run=True), 400, param="id")
    assert status(half, "small") == before


def test_the_models_root_stays_while_something_is_installed_there(half, tmp_path):
    refused = half.client.post("/v1/ui/models_root", json={"path": str(tmp_path / "other")})

    assert_refused(refused, 400, param="path")
    assert not (tmp_path / "other").exists()


def installers_of(server, hub: FakeHub) -> list[psutil.Process]:
    """Begin to install `big`: the installer, and what downloads for it."""
    assert ask(server, "install", "big").status_code == 202
    assert hub.half_sent.wait(HANG_GUARD_S)
    return psutil.Process(server.process.process.pid).children(recursive=True)


def test_a_server_that_stops_ends_its_install_and_leaves_nothing_half_installed(held_hub, tmp_path):
    root = catalogue_in(tmp_path)
    with controlled_server(tmp_path, parallel=True, ui_management=True, models_root="root") as server:
        installers = installers_of(server, held_hub)
        assert server.process.stop() == 0

    assert len(installers) == 2
    assert psutil.wait_procs(installers, timeout=HANG_GUARD_S)[1] == []
    assert Installer(root).installed() == []
    assert "Traceback" not in server.process.log.read_text()


def test_a_server_that_is_killed_takes_its_install_along(held_hub, tmp_path):
    catalogue_in(tmp_path)
    server_of = controlled_server(tmp_path, parallel=True, ui_management=True, models_root="root")
    with pytest.raises(AssertionError, match="exit code -9"), server_of as server:  # noqa: PT012 (its exit)
        installers = installers_of(server, held_hub)
        server.process.process.kill()
        server.process.process.wait(HANG_GUARD_S)
        held_hub.held.set()  # what downloads ends with its next word: nobody hears it

    assert psutil.wait_procs(installers, timeout=HANG_GUARD_S)[1] == []
