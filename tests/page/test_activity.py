"""The view "Activity" of a real server whose engine the tests hold open."""

import json
import re
from contextlib import contextmanager
from typing import get_args

import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from antiphon.observability.journal.entries import AnyEntry
from browser import stopped_timers, visit
from controlled_server import controlled_server
from journal_truth import truth_of
from page_waits import compute, read_text, read_until

EVENTS, STATUS, UNLOAD = "/v1/events", "/v1/status", "/v1/models/unload"
VIEW = "antiphon-activity"
NOON = 1_796_040_000.0
TAKE = """(view, entries) => {
    for (const detail of JSON.parse(entries)) {
        view.feed.entries.push(detail);
        view.feed.dispatchEvent(new CustomEvent("entry", {detail}));
    }
}"""
"""What the connection does with entries that come, as far as the view can tell."""

SEEN_BY_BOTH = """view => {
    const late = new view.constructor(view.feed);
    return [view, late].map(({ledger}) => [ledger.now(), ledger.steps(0, 1e10)]);
}"""
"""By the view, and by one that is made now. Both are asked in one task, so that no entry comes in between."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with controlled_server(tmp_path_factory.mktemp("activity"), parallel=True, ui_management=True) as it:
        yield it


@contextmanager
def activity(browser, server, **options):
    with visit(browser, f"{server.process.url}/#/activity", **options) as page:
        expect(tile(page, "connection")).to_have_text("Live")
        yield page


def show_all(page):
    """Have everything counted, however long ago it was."""
    page.get_by_label("Time", exact=True).select_option("All that is kept")


def tile(page, name, part="value"):
    return page.locator(f"[data-tile={name}] .tile-{part}")


def rows(page, **of):
    return page.locator(".journal-rows li").filter(**of)


def entries_of(server):
    """All that the journal has."""
    last = server.client.get(STATUS).json()["last_event_id"].rpartition("-")[2]
    answer = server.client.get(EVENTS, params={"after": 0, "limit": last})
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: ")]


@contextmanager
def held(server, count, wait_ms=0, model="tts"):
    """So many requests in the engine, or waiting for it, until the block ends; the model has two slots."""
    checkpoint = server.checkpoints[model]
    begun = len(checkpoint.events("run"))
    with checkpoint.held("run"):
        answers = [server.later(f"held {at}", model=model, busy_timeout_ms=wait_ms) for at in range(count)]
        checkpoint.wait_for("run", begun + min(2, count))
        yield answers
    for answer in answers:
        assert answer.result().status_code == 200


def re_ending(text):
    return re.compile(f"{re.escape(text)}$")


def unload(server, request_id, model="tts"):
    answer = server.client.post(UNLOAD, json={"id": model}, headers={"x-request-id": request_id})
    assert answer.status_code == 200


def test_who_runs_and_who_waits_is_shown_and_afterwards_how_long_it_took(browser, server):
    with activity(browser, server) as page:
        show_all(page)
        before = truth_of(entries_of(server))
        with held(server, 5):
            expect(tile(page, "running")).to_have_text("2")
            expect(tile(page, "waiting")).to_have_text("3")
            expect(page.locator(".chart-key", has_text="Waiting")).to_have_text("Waiting 3")
        expect(tile(page, "running")).to_have_text("0")
        expect(tile(page, "waiting")).to_have_text("0")

        truth = truth_of(entries_of(server))
        assert len(truth.runs) == len(before.runs) + 5
        summary = "view => view.ledger.outcomes.summary(0)"
        read_until(page.locator(VIEW), summary, lambda it: it == truth.summary(), f"{truth.summary()}")
        expect(tile(page, "rate", "note")).to_contain_text(f"{len(truth.runs)} finished")
        for name, seconds in (("wait", truth.summary()["wait"]), ("run", truth.summary()["run"])):
            told = {
                part: compute(page, "async s => (await import('/page/base/format.js')).duration(1000 * s)", value)
                for part, value in seconds.items()
            }
            expect(tile(page, name)).to_have_text(told["p50"])
            expect(tile(page, name, "note")).to_have_text(f"p90 {told['p90']}, p99 {told['p99']}")


def test_a_refusal_is_counted_with_its_reason(browser, server):
    with activity(browser, server) as page, held(server, 2):
        show_all(page)
        refused = server.client.post(
            "/v1/audio/speech",
            json={"model": "tts", "input": "no", "busy_timeout_ms": 1},
            headers={"x-request-id": "in-a-hurry"},
        )
        assert refused.status_code == 503
        row = rows(page, has_text="in-a-hurry")
        expect(row.locator(".journal-tag")).to_have_text("refused")
        expect(row).to_contain_text("request in-a-hurry is refused: ")
        reasons = truth_of(entries_of(server)).reasons
        expect(tile(page, "refused")).to_have_text(str(reasons.total()))
        expect(tile(page, "refused", "note")).to_contain_text(
            f"{reasons['overdue']}: what is before it has run for longer"
        )


def test_a_transition_is_told_with_its_cause(browser, server):
    assert server.speak("so that it is loaded").status_code == 200
    with activity(browser, server) as page:
        unload(server, "who-unloads")
        row = rows(page, has_text="who-unloads").filter(has_text="ready")
        expect(row).to_contain_text("tts: ready → unloading, out of use, unload, request who-unloads")
        expect(row.locator("time")).not_to_be_empty()


def test_a_failed_load_stands_out_in_words(browser, server):
    with activity(browser, server) as page, server.steered("load.fail", model_id="asr"):
        assert server.transcribe().status_code == 500
        row = rows(page, has_text="asr: could not be loaded")
        expect(row.locator(".journal-tag")).to_have_text("load failed")
        expect(tile(page, "faults", "note")).to_contain_text("1 failed load")


def test_the_journal_is_filtered_by_model_kind_and_request(browser, server):
    assert server.speak("one for the journal", model="tts").status_code == 200
    named = {"x-request-id": "the-wanted-one"}
    server.client.post("/v1/audio/speech", json={"model": "tts", "input": "x"}, headers=named)
    with activity(browser, server) as page:
        expect(rows(page, has_text="its queue is open")).to_have_count(3)
        expect(rows(page, has_text="the-wanted-one")).to_have_count(0)  # requests are not shown at first

        page.get_by_label("Request id").fill("wanted")
        expect(rows(page)).to_have_count(2)
        expect(rows(page).first).to_contain_text("request the-wanted-one is done")
        page.get_by_label("Request id").fill("")

        page.get_by_label("Model", exact=True).select_option("asr")
        expect(rows(page, has_text="its queue is open")).to_have_count(1)
        expect(rows(page, has_text="tts:")).to_have_count(0)
        expect(tile(page, "running", "note")).to_have_text("of 2 slots")
        page.get_by_label("Model", exact=True).select_option("")

        page.get_by_label("Loads").uncheck()
        page.get_by_label("Requests", exact=True).check()
        expect(rows(page, has_text="the-wanted-one")).to_have_count(2)
        expect(rows(page, has_text="its queue is open")).to_have_count(0)


def test_the_journal_pauses_and_goes_on(browser, server):
    with activity(browser, server) as page:
        page.get_by_label("Requests", exact=True).check()
        expect(rows(page)).not_to_have_count(0)
        page.get_by_role("button", name="Pause").click()
        named = {"x-request-id": "while-it-paused"}
        server.client.post("/v1/audio/speech", json={"model": "tts", "input": "x"}, headers=named)
        resume = page.get_by_role("button", name="Paused (")
        expect(resume).to_be_visible()
        expect(rows(page, has_text="while-it-paused")).to_have_count(0)

        resume.click()
        expect(rows(page, has_text="request while-it-paused is done")).to_be_visible()


def test_an_entry_opens_to_its_json_and_all_can_be_copied(browser, server):
    permissions = ["clipboard-read", "clipboard-write"]
    with activity(browser, server, permissions=permissions, has_clock=True) as page:
        summary = rows(page, has_text="its queue is open").first.locator("summary")
        summary.focus()
        page.keyboard.press("Enter")
        shown = json.loads(read_text(rows(page).locator("pre")))
        assert shown in entries_of(server)

        for kind in ("Transitions", "Evictions", "Refusals", "Faults", "Loads"):
            page.get_by_label(kind).uncheck()
        page.get_by_label("Requests", exact=True).check()
        with stopped_timers(page):
            page.get_by_role("button", name="Copy as JSONL").click()
            expect(page.get_by_role("button", name="Copied")).to_be_visible()
        lines = compute(page, "navigator.clipboard.readText()").splitlines()
        others = {"open", "transition", "registered", "loaded", "load_failed", "evicted", "died", "failed"}
        assert [json.loads(it) for it in lines] == [it for it in entries_of(server) if it["type"] not in others]


def test_the_keyboard_reads_a_chart_and_its_table(browser, server):
    with activity(browser, server) as page:
        with held(server, 3):
            expect(tile(page, "waiting")).to_have_text("1")
        expect(tile(page, "running")).to_have_text("0")
        slider = page.get_by_role("slider", name="Running and waiting: a point in time")
        slider.focus()
        expect(slider).to_have_attribute("aria-valuetext", re_ending(": Running 0, Waiting 0"))
        page.keyboard.press("ArrowLeft")
        expect(slider).to_have_attribute("aria-valuetext", re_ending(": Running 1, Waiting 0"))
        page.keyboard.press("Home")
        expect(slider).to_have_attribute("aria-valuenow", "0")
        page.keyboard.press("Escape")
        expect(page.locator(".chart-when").first).to_have_text("now")

        slider.hover()
        expect(page.locator(".chart-when").first).to_contain_text("at ")
        page.mouse.move(0, 0)
        expect(page.locator(".chart-when").first).to_have_text("now")

        page.get_by_role("button", name="Show as table").first.focus()
        page.keyboard.press("Enter")
        table = page.get_by_role("region", name="Running and waiting, as a table")
        expect(table.locator("tbody tr").first.locator("td")).to_have_text(["0", "0"])
        expect(table.locator("tbody tr").nth(1).locator("td")).to_have_text(["1", "0"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_state_has_a_grave_fault_of_accessibility(browser, server, scheme):
    with activity(browser, server, color_scheme=scheme) as page, held(server, 3):
        expect(tile(page, "waiting")).to_have_text("1")
        rows(page).first.locator("summary").click()
        page.get_by_role("button", name="Show as table").first.click()
        assert grave_faults(page) == []


def test_the_page_is_never_wider_than_a_small_screen(browser, server):
    with activity(browser, server, viewport={"width": 400, "height": 800}) as page:
        expect(rows(page).first).to_be_visible()
        expect(page.locator("html")).to_have_js_property("scrollWidth", 400)


def test_a_lost_connection_leaves_what_is_there_and_another_run_is_a_gap(browser, tmp_path):
    with controlled_server(tmp_path / "a", parallel=True) as old:
        port = int(old.process.url.rpartition(":")[2])
        with activity(browser, old) as page:
            for _ in range(5):
                assert old.speak("before").status_code == 200
            expect(tile(page, "rate", "note")).to_contain_text("5 finished")
            old.process.stop()
            expect(tile(page, "connection")).to_have_text("Lost")
            expect(rows(page, has_text="the server is stopping")).not_to_have_count(0)
            expect(tile(page, "running", "note")).to_have_text("when last heard")
            expect(page.locator(".chart-key", has_text="Running")).to_have_text("Running ?")
            expect(page.locator(".chart-blank").first).to_have_attribute("d", re_ending("Z"))
            with controlled_server(tmp_path / "b", parallel=True, port=port) as new:
                expect(tile(page, "connection")).to_have_text("Live")
                expect(rows(page, has_text="the server was started anew").locator(".journal-tag")).to_have_text("gap")
                expect(tile(page, "rate", "note")).to_contain_text("5 finished")
                with held(new, 1):
                    expect(tile(page, "running")).to_have_text("1")
                    # A view that is first shown now has heard the entries of both runs at once.
                    read_until(page.locator(VIEW), SEEN_BY_BOTH, lambda it: it[0] == it[1], "the same seen by both")
                expect(tile(page, "rate", "note")).to_contain_text("6 finished")
                expect(page.locator(".chart-blank").first).to_have_attribute("d", re_ending("Z"))


def crowd(count):
    """Entries of 20 models: requests that come, have a slot, and are done."""
    entries = []
    for at in range(count // 2):
        claim = {"waiter": at // 20, "operation": "infer", "request_id": f"r{at}"}
        head = {"time": NOON + at / 10, "now": at / 10, "model": f"m{at % 20}"}
        granted = [{"type": "granted", "waiter": at // 20, "slot": 0, "request_id": f"r{at}"}]
        entries.append({"type": "submit", "seq": 2 * at + 1, **head, **claim, "timeout_s": 0, "decided": granted})
        entries.append({"type": "release", "seq": 2 * at + 2, **head, **claim, "now": at / 10 + 0.05})
    return entries


def test_ten_thousand_entries_leave_few_elements_and_only_new_rows_are_made(browser, server):
    with activity(browser, server) as page:
        page.get_by_label("Requests", exact=True).check()
        view = page.locator(VIEW)
        view.evaluate(TAKE, json.dumps(crowd(10_000)))
        expect(rows(page).first).to_contain_text("r4999 is done")
        expect(rows(page)).to_have_count(100)
        read_until(view, "view => view.querySelectorAll('*').length", lambda it: it < 1500, "few elements")

        page.evaluate("() => { for (const row of document.querySelectorAll('.journal-rows li')) row.isOld = true; }")
        died = {"type": "died", "seq": 10_001, "time": NOON + 600, "now": 600, "model": "m7"}
        view.evaluate(TAKE, json.dumps([died]))
        expect(rows(page).first).to_contain_text("m7: its worker process ended")
        old = "view => [...view.querySelectorAll('.journal-rows li')].map(row => row.isOld === true)"
        read_until(view, old, lambda it: it == [False] + [True] * 99, "one new row and 99 old ones")

        page.get_by_role("button", name="Show older entries").click()
        expect(rows(page)).to_have_count(200)
        expect(rows(page).nth(100).locator("summary")).to_be_focused()


def test_every_type_of_entry_has_words_of_its_own(browser, server):
    types = {it.__struct_config__.tag for it in get_args(AnyEntry)}
    with activity(browser, server) as page:
        entries = [{"type": it, "seq": 1, "model": "m", "before": "a", "after": "b"} for it in types]
        told = compute(
            page,
            "async entries => { const {told} = await import('/page/activity/words.js'); return entries.map(told); }",
            entries + [{"type": it} for it in ("gap", "dropped", "end")],
        )
    assert [it["text"] for it in told if it["text"] in types] == []
    assert {it["tag"] for it in told}.isdisjoint({"try_exclusive", "load_failed", "transition"})
