"""Twenty models and a hundred requests that wait: all of it is shown, and only what changes is touched."""

import re

import pytest
from playwright.sync_api import expect

from browser import PAGE_GUARD_S
from conformance_client import eventually
from conformance_server import CONFIGURATIONS, start_server
from page_models import models_view
from page_waits import compute, read_texts, read_until, wait_until_live

MODELS, QUEUED = 20, 5
IDS = [f"m{index}" for index in range(MODELS)]

WATCH = """() => {
  window.built = [];
  new MutationObserver((changes) => window.built.push(...changes.map((it) => it.target.className)))
    .observe(document.querySelector(".models"), {childList: true, subtree: true});
}"""
MARK = """() => {
  for (const element of document.querySelectorAll(".model, .model *")) element.marked = true;
}"""
UNMARKED = """(id) => [...document.querySelectorAll(`[data-model="${id}"], [data-model="${id}"] *`)]
  .filter((element) => !element.marked).length"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Each model with one request that runs and five that wait."""
    folder, models = tmp_path_factory.mktemp("many"), {name: {"slots": 1} for name in IDS}
    server = start_server(folder, CONFIGURATIONS["unbounded_wait"], slots=1, isolation="thread", models=models)
    held = [server.configured_model(name) for name in IDS]
    for model in held:
        model.checkpoint.hold("run")
        for index in range(1 + QUEUED):
            model.infer(f"{index}")
    for model in held:
        model.checkpoint.wait_for("run")
        model.wait_listed(active_slots=1, queued_requests=QUEUED)
    yield server
    server.settle()
    server.close()


@pytest.fixture
def view(browser, crowd):
    with models_view(browser, crowd.process.url) as it:
        wait_until_live(it.page)  # what may be managed is there, too
        expect(it.page.locator(".waiter")).to_have_count(MODELS * QUEUED)
        yield it


def test_every_model_is_shown_with_its_slot_and_its_queue(view, crowd):
    expect(view.page.locator(".model h2")).to_have_text(IDS)
    expect(view.page.locator('.slot[data-use="request"]')).to_have_count(MODELS)
    for model in crowd.models:
        expect(view.waiters(model)).to_have_text([re.compile(f"^{place} infer") for place in range(1, 1 + QUEUED)])
    expect(view.page.locator(".models-summary")).to_contain_text("20 running · 100 waiting")


def test_nothing_is_built_anew_while_only_ages_grow(view):
    view.page.evaluate(WATCH)
    ages = view.page.locator(".age")
    before = read_texts(ages, MODELS * (1 + QUEUED))

    with view.page.expect_response("**/v1/status"):
        view.page.evaluate("dispatchEvent(new Event('online'))")  # the page reads all of it again
    eventually(
        lambda: read_texts(ages, len(before)),
        lambda now: all(age != then for age, then in zip(now, before, strict=True)),
        f"other ages than {before}",
        PAGE_GUARD_S,
    )

    assert compute(view.page, "window.built") == []


def test_what_happens_to_one_model_touches_no_other(view, crowd):
    *rest, last = crowd.models
    view.page.evaluate(MARK)
    view.page.evaluate(WATCH)

    last.unload()
    expect(view.waiters(last)).to_have_count(QUEUED + 1)

    assert [compute(view.page, UNMARKED, model.id) for model in rest] == [0] * len(rest)
    read_until(view.page, "window.built", lambda it: set(it) == {"queue"}, "a queue that was built anew")
    last.checkpoint.release("run")
    expect(view.card(last)).to_have_attribute("data-state", "unloaded")
    expect(view.card(last).locator(".queued")).to_be_hidden()
    expect(view.page.locator(".waiter")).to_have_count((MODELS - 1) * QUEUED)
    assert [compute(view.page, UNMARKED, model.id) for model in rest] == [0] * len(rest)
