"""Packages as a server installs and removes them: in processes, one at a time, and nothing half done is left."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from antiphon.packages import Installer, Manifest, PackageState
from antiphon.packages.installs import MAX_INSTALLS
from antiphon.service.models_root import ModelsRoot
from antiphon.service.packages import PackageService
from antiphon.vocabulary.errors import InvalidRequest, PackageNotFound, ServerBusy, ShuttingDown
from antiphon.vocabulary.spec import Registration
from fake_hub import FakeHub, serving
from hub_packages import REPOSITORY, REVISION, catalogue_text, know_only, package_of

MIB = 1024 * 1024
WEIGHTS, CONFIG = bytes(4 * MIB), b'{"rate": 16000}'
HANG_GUARD_S = 60.0


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub(REPOSITORY, REVISION, {"model.bin": WEIGHTS, "config.json": CONFIG})) as hub:
        know_only(hub, tmp_path / "hf", monkeypatch)
        yield hub


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A models root whose own catalogue has `big`, of which the hub may hold the second half back, and small ones."""
    root = tmp_path / "models"
    root.mkdir()
    small = [package_of({"config.json": CONFIG}, f"small-{number}") for number in range(MAX_INSTALLS)]
    (root / "catalogue.toml").write_text(catalogue_text(package_of({"model.bin": WEIGHTS}, "big"), *small))
    return root


@pytest.fixture
def service(stage, root: Path, hub: FakeHub) -> PackageService:
    return PackageService(ModelsRoot(root), stage.runtime)


def folder_in(root: Path, name: str) -> Path:
    (root / name).mkdir()
    return root / name


async def is_set(event: threading.Event) -> None:
    """Wait for a thread's event."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    waiting = threading.Thread(target=lambda: event.wait(HANG_GUARD_S) and loop.call_soon_threadsafe(heard.set))
    waiting.start()
    await heard.wait()
    waiting.join()


async def held(service: PackageService, hub: FakeHub) -> None:
    """Begin to install `big`, and return when half of it is there."""
    hub.held = threading.Event()
    service.install("big")
    await is_set(hub.half_sent)
    while not service._installs.under_way["big"].progress:  # noqa: ASYNC110 (nothing announces it)
        await asyncio.sleep(0)


async def settled(service: PackageService) -> None:
    """Wait until no install is queued or runs."""
    if service._installs._working is not None:
        await asyncio.wait_for(asyncio.shield(service._installs._working), HANG_GUARD_S)


def processes() -> list[psutil.Process]:
    """The processes of installs: other tests of this process may have children, too."""
    return [it for it in psutil.Process().children(recursive=True) if "antiphon.worker.package" in it.cmdline()]


def hidden(root: Path) -> list[str]:
    """The hidden folders that have anything in them, the locks aside."""
    return sorted(path.name for path in root.glob(".*") if path.name != ".locks" and any(path.iterdir()))


async def test_an_install_goes_on_by_itself_and_tells_how_far_it_is(service, hub, root):
    await held(service, hub)

    half = service.package("big")
    assert (half.state, half.path, half.install.phase) == (PackageState.ABSENT, None, "downloading")
    assert 0 < half.install.progress < 0.5
    hub.held.set()
    await settled(service)

    done = service.package("big")
    assert (done.state, done.path, done.install, done.error) == (PackageState.INSTALLED, root / "big", None, None)
    assert Installer(root).verify("big") == []
    assert processes() == []


async def test_a_stopped_install_is_gone_at_once_and_the_next_goes_on_where_it_was(service, hub, root):
    await held(service, hub)

    stopped = await service.stop("big")

    assert (stopped.state, stopped.install, stopped.error) == (PackageState.ABSENT, None, None)
    assert processes() == []
    assert hidden(root) == [".downloads"]
    hub.held.set()
    service.install("big")
    await settled(service)
    assert hub.ranges_of()[0] is None
    assert hub.ranges_of()[1] in (f"bytes={MIB}-", f"bytes={2 * MIB}-")
    assert Installer(root).verify("big") == []
    assert hidden(root) == []


async def test_installs_take_turns_and_one_that_waits_can_be_stopped(service, hub):
    await held(service, hub)
    for name in ("small-1", "small-2", "small-1"):
        service.install(name)

    assert list(service._installs.under_way) == ["big", "small-1", "small-2"]
    assert service.package("small-1").install.phase is None
    assert (await service.stop("small-1")).install is None
    hub.held.set()
    await settled(service)

    states = [service.package(name).state for name in ("big", "small-1", "small-2")]
    assert states == [PackageState.INSTALLED, PackageState.ABSENT, PackageState.INSTALLED]


async def test_the_queue_has_an_end(service, hub):
    await held(service, hub)
    for number in range(MAX_INSTALLS - 1):
        service.install(f"small-{number}")

    for ask in (service.install, service.foresee_install):
        with pytest.raises(ServerBusy):
            ask(f"small-{MAX_INSTALLS - 1}")
    assert service.install("big").install is not None  # what is queued already takes no place
    await service.close()


async def test_what_an_install_ended_in_is_told_until_the_next(service, hub):
    hub.cdn_status = 503
    service.install("big")
    await settled(service)
    assert service.package("big").error == f"the model hub answered 503 for model.bin of {REPOSITORY}"

    hub.cdn_status = None
    assert service.install("big").error is None
    await settled(service)
    assert service.package("big").state is PackageState.INSTALLED


async def test_a_process_that_dies_ends_its_install_alone(service, hub):
    await held(service, hub)
    service.install("small-1")
    for process in processes():
        os.kill(process.pid, signal.SIGKILL)
    await settled(service)

    assert service.package("big").error == "the process that should install big ended before it was done"
    assert service.package("small-1").state is PackageState.INSTALLED


async def test_a_close_ends_what_runs_and_takes_no_more(service, hub, root):
    await held(service, hub)
    service.install("small-1")

    await service.close()

    assert processes() == []
    assert Installer(root).installed() == []
    with pytest.raises(ShuttingDown):
        service.install("small-2")


async def test_what_no_catalogue_has_is_not_found(service):
    for ask in (service.install, service.package, service.foresee_remove, service.foresee_install):
        with pytest.raises(PackageNotFound):
            ask("../models")
    with pytest.raises(PackageNotFound):
        await service.stop("nobody")


async def test_a_package_is_removed(service, root):
    service.install("small-1")
    await settled(service)

    assert (await service.remove("small-1")).state is PackageState.ABSENT

    assert Installer(root).installed() == []
    with pytest.raises(InvalidRequest, match="small-1 is not installed"):
        await service.remove("small-1")


async def test_a_package_that_is_being_installed_is_not_removed(service, hub):
    await held(service, hub)

    with pytest.raises(InvalidRequest, match="stop that first"):
        await service.remove("big")

    await service.stop("big")
    assert (await service.remove("big")).install is None  # what it had downloaded


@pytest.mark.parametrize("through", ["its folder", "a file in it", "a link to it"])
async def test_a_package_whose_files_a_model_uses_is_not_removed(stage, tmp_path, through):
    checkpoint = stage.checkpoint("tiny")
    Manifest.of(package_of({"config.json": CONFIG})).write(checkpoint.path)
    link = folder_in(tmp_path, "elsewhere") / "link"
    link.symlink_to(checkpoint.path)
    service = PackageService(ModelsRoot(tmp_path), stage.runtime)
    path = {"its folder": checkpoint.path, "a file in it": checkpoint.path / "x", "a link to it": link}
    spec = checkpoint.spec(model_id="a", slots=1)
    stage.runtime.add(Registration(replace(spec, path=str(path[through]))), stage.adapter.inspect(spec))

    with pytest.raises(InvalidRequest, match="the model 'a' is registered with the files of tiny") as caught:
        await service.remove("tiny")

    assert caught.value.param == "id"
    assert Installer(tmp_path).installed() == ["tiny"]


async def test_the_root_is_not_replaced_under_an_install(service, hub, root, tmp_path):
    await held(service, hub)

    for attempt in (service.replace_root, service.foresee_root):
        with pytest.raises(InvalidRequest, match="big is being installed here") as caught:
            attempt(str(tmp_path / "other"))
        assert caught.value.param == "path"
    assert service.root == root
    assert not (tmp_path / "other").exists()

    await service.stop("big")
    assert service.replace_root(str(tmp_path / "other")) == tmp_path / "other"
    assert [view.id for view in service.packages() if view.family == "controlled"] == []


async def test_what_is_installed_and_in_no_catalogue_is_listed(service, root):
    Manifest.of(package_of({"config.json": CONFIG}, "foreign")).write(folder_in(root, "foreign"))

    view = service.packages()[-1]

    assert (view.id, view.state, view.size_bytes, view.summary) == (
        "foreign",
        PackageState.INSTALLED,
        len(CONFIG),
        None,
    )
