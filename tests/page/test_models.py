"""The view "Models": what it shows of slots and queues, and what is done to models with it."""

import re

import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from conformance_server import CONFIGURATIONS, start_server
from page_models import models_view
from page_waits import press_until_focused, read_text, read_until
from server_process import running_server

KEY, ADMIN_KEY = "a-key", "an-admin-key"
AGE = r"(\d+ min )?\d+ s"
PLACES = """card => [...card.querySelectorAll(".waiter")].map((waiter) => {
  const { y, width } = waiter.getBoundingClientRect();
  return { y, width };
})"""
MANAGEMENT = ["Load… m", "Slots… m", "Unload all…", "Register a model…"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    server = start_server(folder, CONFIGURATIONS["default"], slots=2, isolation="thread")
    yield server
    server.close()


@pytest.fixture
def server(shared):
    """A server with two slots a model; what a test makes in it is unloaded again."""
    yield shared
    shared.settle()


@pytest.fixture
def model(server):
    """A model that is loaded, with two slots."""
    return server.new_model()


@pytest.fixture
def view(browser, server):
    with models_view(browser, server.process.url) as it:
        yield it


def run_held(model, *texts):
    """Let requests run until the model is released."""
    model.checkpoint.hold("run")
    for text in texts:
        model.infer(text)
        model.checkpoint.wait_for("run", text=text)


def queue_up(model, *operations):
    """Let these wait behind what runs, in this order."""
    for index, operation in enumerate(operations):
        model.unload() if operation == "unload" else model.infer(f"{index}")
        model.wait_queue(*operations[: index + 1])


def is_barrier_across(waiters):
    first, barrier, last = waiters
    return barrier["width"] > 2 * first["width"] and first["y"] < barrier["y"] < last["y"]


def test_no_state_of_the_view_has_a_grave_fault_of_accessibility(view, server, model):
    run_held(model, "a", "b")
    queue_up(model, "infer", "unload", "infer")
    broken = server.new_model(loaded=False)
    broken.checkpoint.fail("load")
    broken.infer("x").result()
    expect(view.waiters(model)).to_have_count(3)
    expect(view.card(broken)).to_contain_text("Last error")
    assert grave_faults(view.page) == []
    view.page.emulate_media(color_scheme="dark")
    assert grave_faults(view.page) == []
    view.button(f"Slots… {model.id}").click()
    expect(view.dialog.locator("dd").first).to_be_visible()
    assert grave_faults(view.page) == []


def test_a_running_slot_shows_what_runs_and_for_how_long(view, model):
    run_held(model, "x")

    expect(view.slots(model)).to_have_text([re.compile(f"^Slot 1 infer {AGE}$"), re.compile("^Slot 2 free")])
    view.page.route("**/v1/status", lambda route: route.abort())  # from here on it is the page alone that counts
    age = view.slots(model).first.locator(".age")
    expect(age).not_to_have_text(read_text(age))


def test_the_queue_is_shown_in_its_order_with_the_barrier_across_it(view, model):
    run_held(model, "a", "b")
    queue_up(model, "infer", "unload", "infer")

    expect(view.waiters(model)).to_have_text(
        [re.compile(f"^1 infer {AGE}"), re.compile(f"^2 barrier: unload {AGE}"), re.compile(f"^3 infer {AGE}")]
    )
    read_until(view.card(model), PLACES, is_barrier_across, "a wide barrier between two narrow waiters")
    expect(view.card(model)).to_contain_text("3 waiting, 1 a barrier")


def test_a_long_queue_is_folded_until_all_of_it_is_wanted(view, model):
    run_held(model, "a", "b")
    queue_up(model, *["infer"] * 11)

    expect(view.card(model).locator(".fold")).to_have_text("… 3 more requests")
    expect(view.waiters(model)).to_have_count(8)
    view.button("Show the whole queue").press("Enter")
    expect(view.waiters(model)).to_have_count(11)
    view.button("Show less of the queue").press("Enter")
    expect(view.waiters(model)).to_have_count(8)


def test_an_exclusive_lease_has_all_slots(view, model):
    model.checkpoint.hold("destroy")
    unload = model.unload()

    expect(view.slots(model)).to_have_text(re.compile(f"^All slots unload {AGE}$"))
    expect(view.card(model)).to_have_attribute("data-state", "unloading")
    model.checkpoint.release("destroy")
    unload.ok()
    expect(view.slots(model)).to_have_text([re.compile("free"), re.compile("free")])
    expect(view.card(model)).to_have_attribute("data-state", "unloaded")


def test_an_unload_waits_for_what_runs_and_is_told_when_it_is_done(view, model):
    run_held(model, "x")

    view.button(f"Unload… {model.id}").click()
    expect(view.dialog.locator("dd")).to_have_text(["1 running", model.id])
    view.confirm("Unload")

    expect(view.waiters(model)).to_have_text(re.compile("1 barrier: unload"))
    expect(view.operations).to_contain_text(f"Unload {model.id} under way")
    expect(view.dialog).to_have_count(0)
    expect(view.button(f"Unload… {model.id}")).to_be_focused()
    model.checkpoint.release("run")
    expect(view.operations).to_contain_text(f"Unload {model.id} is unloaded")
    expect(view.card(model)).to_have_attribute("data-state", "unloaded")
    expect(view.button(f"Load… {model.id}")).to_be_focused()


def test_several_are_unloaded_after_the_dry_run_was_shown(view, server, model):
    other, third = server.new_model(), server.new_model()
    run_held(other, "x")
    for each in (model, other):
        view.page.get_by_role("checkbox", name=f"Select {each.id}", exact=True).check()

    view.button("Unload selected (2)…").click()

    expect(view.dialog.locator("dd").first).to_have_text(f"{other.id}: 1 running")
    expect(view.dialog.locator("dd").nth(1).get_by_role("listitem")).to_have_text([model.id, other.id])
    assert (model.status()["state"], other.status()["queue"]) == ("ready", [])
    view.confirm("Unload")
    expect(view.card(model)).to_have_attribute("data-state", "unloaded")
    expect(view.waiters(other)).to_have_text(re.compile("barrier: bulk unload"))
    other.checkpoint.release("run")
    expect(view.operations).to_contain_text(f"unloaded: {model.id}, {other.id}")
    expect(view.card(third)).to_have_attribute("data-state", "ready")


def test_a_refused_load_is_told_in_the_servers_words(view, server):
    model = server.new_model(loaded=False)
    model.checkpoint.fail("load")

    view.button(f"Load… {model.id}").click()
    expect(view.dialog).to_contain_text("Loads")
    view.confirm("Load")

    words = model.infer("x").result().json()["error"]["message"]
    expect(view.operations.get_by_role("alert")).to_contain_text(words)
    expect(view.operations.get_by_role("alert")).to_contain_text("load_failed")
    expect(view.card(model)).to_contain_text(f"Last error: {words}")
    view.button("Dismiss").click()
    expect(view.operations).to_have_count(0)


def test_slots_are_changed_and_the_rest_of_the_registration_stays(view, server):
    model = server.new_model(pinned=True, busy_timeout_ms=7000)
    before = server.client.call("GET", f"/v1/ui/models/{model.id}").json()

    view.button(f"Slots… {model.id}").click()
    expect(view.dialog).to_contain_text("all stays as it is")
    view.dialog.get_by_label("Slots").fill("9")
    expect(view.dialog.get_by_role("alert")).to_contain_text("slots")
    expect(view.dialog.get_by_role("button", name="Change all the same")).to_be_enabled()
    view.dialog.get_by_label("Slots").fill("17")
    expect(view.dialog.get_by_role("button", name="Change")).to_be_disabled()
    view.dialog.get_by_label("Slots").fill("3")
    view.dialog.get_by_label("How").select_option("Side by side")
    expect(view.dialog.locator("dd").nth(1)).to_have_text(model.id)
    view.confirm("Change")

    expect(view.slots(model)).to_have_count(3)
    expect(view.operations).to_contain_text("is done")
    assert server.client.call("GET", f"/v1/ui/models/{model.id}").json() == {**before, "slots": 3}


def test_a_model_is_registered_with_files_anywhere(view, server):
    model = server.unregistered_model()
    view.button("Register a model…").click()
    view.dialog.get_by_label("Id").fill(model.id)
    view.dialog.get_by_label("Path").fill("/nowhere")
    view.dialog.get_by_label("Family").fill("controlled")
    expect(view.dialog.get_by_role("alert")).to_contain_text("field path")
    expect(view.dialog.get_by_role("button", name="Register and load")).to_be_disabled()
    view.dialog.get_by_label("Path").fill(str(model.checkpoint.path))
    expect(view.dialog.locator("dd").filter(has_text=model.id)).to_be_visible()
    view.confirm("Register and load")

    expect(view.card(model)).to_have_attribute("data-state", "ready")
    expect(view.card(model)).to_contain_text("controlled · tts · offline")


def test_the_keyboard_alone_unloads_a_model(view, model):
    view.page.get_by_label("Find a model").focus()
    view.page.keyboard.type(model.id)
    expect(view.page.locator(".model:visible")).to_have_count(1)
    press_until_focused(view.button(f"Unload… {model.id}"), "Tab")
    view.page.keyboard.press("Enter")
    expect(view.dialog.get_by_role("button", name="Unload")).to_be_enabled()
    press_until_focused(view.dialog.get_by_role("button", name="Unload", exact=True), "Tab")
    view.page.keyboard.press("Enter")

    expect(view.card(model)).to_have_attribute("data-state", "unloaded")
    expect(view.button(f"Load… {model.id}")).to_be_focused()


def test_what_only_managers_may_do_is_there_with_their_key_and_goes_with_it(browser, tmp_path):
    models = [{"id": "m", "family": "controlled", "path": str(tmp_path / "m"), "task": "tts", "lazy": True}]
    (tmp_path / "m").mkdir()
    config = {"models": models, "ui_management": True, "api_keys": [KEY], "admin_keys": [ADMIN_KEY]}
    with running_server(tmp_path, config, "--parallel-jobs") as server, models_view(browser, server.url) as view:
        expect(view.dialog).to_be_visible()  # by itself, the first time
        for key, count in ((KEY, 0), (ADMIN_KEY, 1), (KEY, 0)):
            view.dialog.get_by_label("API key").fill(key)
            view.confirm("Use this key")
            expect(view.card("m")).to_be_visible()
            expect(view.page.get_by_text("this key may not manage")).to_have_count(1 - count)
            expect(view.page.get_by_role("tab", name="Packages")).to_have_count(count)
            expect(view.page.get_by_role("checkbox", name="Select m")).to_have_count(count)
            for name in MANAGEMENT:
                expect(view.button(name)).to_have_count(count)
            view.button("Key").click()


def test_without_parallel_jobs_there_are_no_slots_to_choose(browser, tmp_path):
    server = start_server(tmp_path, CONFIGURATIONS["serial"], slots=1, isolation="thread", models={"m": {}})
    with models_view(browser, server.process.url) as view:
        view.button("Load… m").click()
        view.confirm("Load")
        expect(view.card("m")).to_have_attribute("data-state", "ready")
        expect(view.button("Slots… m")).to_have_count(0)
        view.button("Register a model…").click()
        expect(view.dialog.get_by_label("Family")).to_be_visible()
        expect(view.dialog.get_by_label("Slots")).to_have_count(0)
    server.close()
