"""The packages in the view "Models": found, installed, registered and removed, from a hub that tests hold."""

import threading

import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from controlled_server import controlled_server
from fake_hub import FakeHub, serving
from hub_packages import REPOSITORY, REVISION, catalogue_text, know_only, package_of
from page_models import models_view
from page_waits import read_text
from server_process import HANG_GUARD_S

FILES = {"model.bin": bytes(1024 * 1024), "config.json": b'{"rate": 16000}'}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    with serving(FakeHub(REPOSITORY, REVISION, FILES)) as hub, pytest.MonkeyPatch.context() as monkeypatch:
        know_only(hub, tmp_path_factory.mktemp("hf"), monkeypatch)
        yield hub


@pytest.fixture(scope="module")
def server(hub, tmp_path_factory):
    """A server whose models root has a catalogue of `big` and `small`, both of one file."""
    folder = tmp_path_factory.mktemp("packages")
    packages = [
        package_of({path: FILES[path]}, name) for name, path in (("big", "model.bin"), ("small", "config.json"))
    ]
    (folder / "root").mkdir()
    (folder / "root" / "catalogue.toml").write_text(catalogue_text(*packages))
    with controlled_server(folder, parallel=True, ui_management=True, models_root="root") as it:
        yield it


@pytest.fixture
def view(browser, server):
    """The view with its packages shown."""
    with models_view(browser, server.process.url) as it:
        it.page.get_by_role("tab", name="Packages").click()
        yield it


@pytest.fixture
def held_hub(hub):
    """The hub, which holds the second half of what it sends back until the test has ended."""
    hub.half_sent.clear()
    hub.held = threading.Event()
    yield hub
    hub.held.set()
    hub.held = None


def package(view, name):
    return view.page.locator(f'[data-package="{name}"]')


def test_packages_are_found_by_words_task_and_state(view):
    rows = view.page.locator(".package")
    expect(package(view, "small")).to_contain_text("a voice")
    expect(package(view, "small")).to_contain_text("controlled · tts · offline · 15 B on the disk")
    expect(package(view, "small")).to_contain_text("Licence: CC0")

    view.page.get_by_label("Find a package").fill("CONTROLLED")
    expect(rows).to_have_count(2)
    view.page.get_by_label("Task").select_option("asr")
    expect(view.page.get_by_text("No package is like that.")).to_be_visible()
    view.page.get_by_label("Task").select_option("any")
    view.page.get_by_label("State").select_option("absent")
    expect(rows).to_have_count(2)


def test_an_install_shows_its_progress_can_be_stopped_and_is_done(view, held_hub):
    big = package(view, "big")
    view.button("Install (1.0 MiB) big").click()
    assert held_hub.half_sent.wait(HANG_GUARD_S)
    progress = big.get_by_role("progressbar", name="Install of big")
    expect(progress).to_be_visible()
    expect(big).to_contain_text("downloading")
    assert grave_faults(view.page) == []

    view.button("Stop big").click()
    expect(progress).to_have_count(0)
    expect(big).to_have_attribute("data-state", "absent")

    held_hub.held.set()
    view.button("Install (1.0 MiB) big").click()
    expect(big).to_have_attribute("data-state", "installed")
    expect(view.page.get_by_role("status").filter(has_text="big: installed")).to_be_attached()
    expect(progress).to_have_count(0)


def test_a_package_is_registered_and_removed_when_no_model_has_it(view, server):
    small = package(view, "small")
    view.button("Install (15 B) small").click()
    view.button("Register… small").click()
    expect(view.dialog.get_by_label("Id")).to_have_value("small")
    view.confirm("Register and load")
    expect(view.operations).to_contain_text("small is registered and in memory")

    view.button("Remove… small").click()
    expect(view.dialog.get_by_role("alert")).to_contain_text("'small'")
    expect(view.dialog.get_by_role("button", name="Remove")).to_be_disabled()
    view.dialog.get_by_role("button", name="Cancel").click()

    elsewhere = {"id": "small", "family": "controlled", "task": "tts", "path": str(server.checkpoints["tts"].path)}
    assert server.client.post("/v1/models/load", json=elsewhere).status_code == 200
    view.button("Remove… small").click()
    expect(view.dialog.get_by_role("button", name="Remove")).to_be_enabled()
    assert grave_faults(view.page) == []
    view.confirm("Remove")
    expect(small).to_have_attribute("data-state", "absent")


def test_the_models_root_is_shown_and_changed(view, tmp_path):
    shown = view.page.locator(".models-root code")
    before = read_text(shown)
    view.button("Change…").click()
    folder = view.dialog.get_by_label("Folder")
    expect(folder).to_have_value(before)
    folder.fill("not/absolute")
    expect(view.dialog.get_by_role("alert")).to_contain_text("field path")

    folder.fill(str(tmp_path))
    view.confirm("Use this folder")
    expect(shown).to_have_text(str(tmp_path))
    expect(view.dialog).to_have_count(0)
    view.button("Change…").click()
    folder.fill(before)
    view.confirm("Use this folder")
    expect(shown).to_have_text(before)
