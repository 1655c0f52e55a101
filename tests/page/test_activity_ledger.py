"""The ledger of the view "Activity": fed with journals of real gates, it counts what the plain way counts."""

import itertools
import json
import random

import pytest

from antiphon.admission.gate import Granted
from antiphon.observability.journal.entries import line_encoder
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.testing import ManualClock
from antiphon.vocabulary.states import EvictionCause, Operation
from browser import visit
from journal_truth import truth_of
from page_waits import compute
from server_process import running_server

MODELS = ["a", "b", "c"]
FEED = """async ({entries, statuses}) => {
    const {Ledger} = await import("/page/activity/ledger.js");
    const ledger = window.ledger = new Ledger();
    for (const entry of JSON.parse(entries)) {
        if (entry.type in statuses) ledger.compare(statuses[entry.type]);
        ledger.take(entry);
        if (entry.seq in statuses) ledger.compare(statuses[entry.seq]);
    }
}"""
STEPS = (
    "model => ledger.steps(0, 1e10, model).map(({time, active, waiting, isKnown}) => [time, active, waiting, isKnown])"
)


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")
    model = {"id": "m", "family": "controlled", "path": str(folder), "task": "tts", "lazy": True}
    with running_server(folder, {"models": [model]}) as server, visit(browser, server.url) as page:
        yield page


class History:
    """What a die makes of three models: requests, some of them refused, some that leave, and barriers between them."""

    def __init__(self, seed, moves):
        self.dice, self.clock, self.time = random.Random(seed), ManualClock(), 1_796_032_845.0
        self.journal = Journal(self.clock, wall=self.wall, run="run")
        self.gates = [JournaledGate(name, 2, self.journal) for name in MODELS]
        self.waiting, self.leases, self.statuses = {}, [], {}
        for _ in range(moves):
            self.clock.advance(self.dice.random())
            self.move(self.dice.choice(self.gates))
            self.statuses[self.journal.last] = self.status()
        self.entries = [json.loads(line_encoder.encode(it)) for it in self.journal.between(0, self.journal.last)]

    def wall(self):
        self.time += 0.001
        return round(self.time + self.clock.now(), 6)

    def move(self, gate):
        now, choice = self.clock.now(), self.dice.randrange(20)
        if choice < 8:
            operation = Operation.UNLOAD if choice == 0 else Operation.INFER
            waiter, decisions = gate.submit(operation, now, self.dice.choice([0, 1.5, 5]))
            self.waiting[waiter] = gate
            self.follow(decisions)
        elif choice < 15 and self.leases:
            lease = self.leases.pop(self.dice.randrange(len(self.leases)))
            self.follow(next(it for it in self.gates if it.name == lease.waiter.gate).release(lease, now))
        elif choice < 17 and self.waiting:
            waiter = self.dice.choice(list(self.waiting))
            self.follow(gate.expire(now))  # those of another gate that are due are still in its queue
            if waiter in self.waiting:
                self.follow(self.waiting.pop(waiter).withdraw(waiter, now))
        elif choice == 17:
            self.journal.evicted(gate.name, EvictionCause.IDLE, None)
        else:
            self.follow(gate.expire(now))

    def follow(self, decisions):
        for decision in decisions:
            if isinstance(decision, Granted):
                self.leases.append(decision.lease)
                self.waiting.pop(decision.lease.waiter, None)
            else:
                self.waiting.pop(decision.waiter, None)

    def status(self):
        models = [
            {"id": it.name, "active_slots": it.active_slots, "queued_requests": it.queued_requests} for it in self.gates
        ]
        return {"models": models, "last_event_id": self.journal.position}


def feed(page, entries, statuses):
    page.evaluate(FEED, {"entries": json.dumps(entries), "statuses": statuses})


def levels(truth):
    """Those after which something is another: what the page draws a step for."""
    return {time: (active, waiting) for time, active, waiting in truth.levels}


def drawn(page, model=""):
    return compute(page, STEPS, model)


@pytest.mark.parametrize("seed", range(3))
def test_a_whole_journal_is_counted_as_the_plain_way_counts_it(page, seed):
    history = History(seed, 800)
    last = history.journal.last
    feed(page, history.entries, {last: history.statuses[last]})

    for model in ["", *MODELS]:
        truth = truth_of(history.entries, model)
        assert compute(page, "model => ledger.outcomes.summary(0, model)", model) == truth.summary()
        assert compute(page, "model => ledger.now(model)", model) == {
            "active": truth.levels[-1][1],
            "waiting": truth.levels[-1][2],
        }
        known = levels(truth)
        steps = drawn(page, model)
        assert len(steps) > 100
        assert [known.get(time, (0, 0)) for time, *_ in steps] == [(active, waiting) for _, active, waiting, _ in steps]


def test_a_journal_that_is_joined_late_is_put_right_by_the_status(page):
    history = History(7, 800)
    cut, last = 300, history.journal.last
    before = truth_of(history.entries[:cut]).levels[-1]
    assert before[1] > 0  # some were under way, or this would show nothing
    assert before[2] > 0
    feed(page, history.entries[cut:], {last: history.statuses[last]})

    known = levels(truth_of(history.entries))
    steps = drawn(page)
    assert [list(known[time]) for time, *_ in steps[1:]] == [[active, waiting] for _, active, waiting, _ in steps[1:]]
    assert compute(page, "ledger.now()") == {"active": known[steps[-1][0]][0], "waiting": known[steps[-1][0]][1]}


def test_how_many_run_is_not_told_before_it_is_known(page):
    feed(page, History(7, 50).entries[20:], {})
    assert compute(page, "ledger.now()") is None


def test_a_gap_ends_what_was_known_and_the_status_after_it_begins_anew(page):
    history = History(11, 800)
    first, then, last = history.entries[:300], history.entries[500:], history.journal.last
    gap = {"type": "gap", "reason": "too_old", "missed": 200}
    statuses = {first[-1]["seq"]: history.statuses.get(first[-1]["seq"]), last: history.statuses[last]}
    feed(page, [*first, gap, *then], {seq: status for seq, status in statuses.items() if status})

    known = levels(truth_of(history.entries))
    steps = drawn(page)
    unknown = [time for time, _, _, is_known in steps if not is_known]
    assert unknown == [first[-1]["time"]]
    after = [step for step in steps if step[0] >= then[0]["time"]][1:]
    assert [list(known[time]) for time, *_ in after] == [[active, waiting] for _, active, waiting, _ in after]


def test_a_server_that_was_started_anew_begins_with_nothing(page):
    old, new = History(3, 200), History(4, 200)
    status = {"models": [], "last_event_id": "other-0"}
    gap = {"type": "gap", "reason": "restarted"}
    feed(page, [*old.entries, gap, *new.entries], {old.journal.last: old.statuses[old.journal.last], "gap": status})

    truth = truth_of(new.entries)
    assert compute(page, "ledger.now()") == {"active": truth.levels[-1][1], "waiting": truth.levels[-1][2]}


def test_the_chosen_time_leaves_out_what_ended_before_it(page):
    history = History(5, 800)
    feed(page, history.entries, {})
    middle = history.entries[400]["time"]
    truth = truth_of(history.entries)
    earlier = truth_of(history.entries[:400])

    summary = compute(page, "from => ledger.outcomes.summary(from)", middle)
    assert summary["finished"] == len(truth.runs) - len(earlier.runs)
    assert summary["reasons"] == dict(truth.reasons - earlier.reasons)


def test_the_bars_hold_every_end_once(page):
    history = History(5, 800)
    feed(page, history.entries, {})
    span = [history.entries[0]["time"], history.entries[-1]["time"]]
    bars = compute(page, "([from, to]) => ledger.outcomes.bars(from, to, 10)", span)

    truth = truth_of(history.entries)
    assert sum(bar["finished"] for bar in bars) == len(truth.runs)
    assert sum(bar["refused"] for bar in bars) == truth.reasons.total()
    assert sum(bar["left"] for bar in bars) == truth.befell["left"]
    assert {after["time"] - before["time"] for before, after in itertools.pairwise(bars)} == {10}


def test_what_is_kept_has_a_limit_and_the_peaks_outlive_it(page):
    limits = compute(
        page,
        """async () => {
        const {KEPT_STEPS, Levels} = await import("/page/activity/levels.js");
        const {KEPT_OUTCOMES, Outcomes} = await import("/page/activity/outcomes.js");
        const levels = new Levels();
        const outcomes = new Outcomes();
        levels.begin(0);
        levels.change(1, 7, 9);
        levels.change(2, -7, -9);
        let most = 0;
        for (let at = 3; at < 100_000; at += 1) {
            levels.change(at, at % 2 ? 1 : -1, 0);
            outcomes.add({time: at, model: "m", what: "finished", waitS: 0, runS: 1});
            most = Math.max(most, levels.steps.length, outcomes.kept.length / KEPT_OUTCOMES * KEPT_STEPS / 1.5);
        }
        const peak = (name) => Math.max(...levels.steps.map((step) => step[name]));
        const near = levels.between(0, 1e6, 100);
        return {most: most / KEPT_STEPS, peaks: [peak("active"), peak("waiting")], near: near.length,
            last: near.at(-1).active, cut: outcomes.isCut};
    }""",
    )
    assert limits["most"] <= 1
    assert limits["peaks"] == [7, 9]
    assert limits["near"] <= 101
    assert limits["last"] == 1
    assert limits["cut"] is True
