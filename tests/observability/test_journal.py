"""The journal in memory: what is kept, who may go on from where, and what is written."""

import asyncio
import logging
import resource
import threading

import pytest

from antiphon.admission.gate import Granted
from antiphon.observability.journal.entries import Opened, Submitted
from antiphon.observability.journal.follower import HEARTBEAT_S, Follower, Gap, Place, place_of
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.observability.journal.lines import FLUSH_S, JournalLines
from antiphon.observability.journal.reading import replay_file
from antiphon.runtime.line_file import LineFile
from antiphon.testing import ManualClock
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.states import ModelState, Operation


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def journal(clock):
    """One that keeps ten entries; its first says that the model `m` has two slots."""
    journal = Journal(clock, size=10, wall=lambda: 0.0, run="run")
    journal.gate = JournaledGate("m", 2, journal)
    return journal


def cycle(journal, clock):
    """A request comes and goes: two entries."""
    _, (granted,) = journal.gate.submit(Operation.INFER, clock.now(), 0)
    assert isinstance(granted, Granted)
    journal.gate.release(granted.lease, clock.now())


def test_the_last_entries_are_kept_in_their_order(journal, clock):
    for _ in range(10):
        cycle(journal, clock)

    kept = journal.between(journal.oldest - 1, 100)
    assert [it.seq for it in kept] == list(range(12, 22))
    assert journal.position == "run-21"


def test_a_call_that_is_refused_leaves_no_entry(journal, clock):
    _, (granted,) = journal.gate.submit(Operation.INFER, clock.now(), 0)
    journal.gate.release(granted.lease, clock.now())
    before = journal.last
    with pytest.raises(Exception, match="is not out"):
        journal.gate.release(granted.lease, clock.now())
    assert journal.last == before


@pytest.mark.parametrize(
    ("event_id", "place"),
    [
        (None, Place(21)),
        ("0", Place(11)),
        ("run-15", Place(15)),
        ("run-21", Place(21)),
        ("run-4", Place(11, Gap.TOO_OLD, 7)),
        ("run-22", Place(11, Gap.RESTARTED)),
        ("other-15", Place(11, Gap.RESTARTED)),
    ],
)
def test_who_comes_back_goes_on_or_is_told_of_a_gap(journal, clock, event_id, place):
    for _ in range(10):
        cycle(journal, clock)

    assert place_of(journal, event_id) == place


@pytest.mark.parametrize("event_id", ["run", "run-", "run-x", "5", "run-1.5", "run--1x"])
def test_what_is_no_events_id_is_refused(journal, event_id):
    with pytest.raises(ValueError, match=event_id):
        place_of(journal, event_id)


async def test_a_follower_hears_of_what_happens_next(journal, clock):
    follower = Follower(journal, clock, journal.last)
    news = asyncio.ensure_future(follower.news())
    await asyncio.sleep(0)
    cycle(journal, clock)

    assert [it.seq for it in await news] == [2, 3]


async def test_a_follower_of_one_model_hears_of_no_other(journal, clock):
    other = JournaledGate("other", 1, journal)
    follower = Follower(journal, clock, 0, ["other"])
    other.expire(clock.now())
    cycle(journal, clock)

    assert [it.model for it in await follower.news()] == ["other", "other"]


async def test_where_nothing_happens_there_is_a_heartbeat(journal, clock):
    follower = Follower(journal, clock, journal.last, ["other"])
    news = asyncio.ensure_future(follower.news())
    await asyncio.sleep(0)
    cycle(journal, clock)
    await asyncio.sleep(0)
    assert not news.done()
    clock.advance(HEARTBEAT_S)

    assert list(await news) == []
    assert follower.after == journal.last


async def test_who_is_too_slow_has_missed_something_and_gets_nothing(journal, clock):
    follower = Follower(journal, clock, 0)
    for _ in range(6):
        cycle(journal, clock)

    assert list(await follower.news()) == []
    assert follower.missed == 3


async def test_at_the_end_a_follower_has_the_rest_and_ends(journal, clock):
    follower = Follower(journal, clock, 0)
    journal.end()
    assert not follower.ended
    assert len(await follower.news()) == 1
    assert follower.ended


class Written:
    """A maker of files of one journal, closed at the end of the test."""

    def __init__(self, journal, clock, path):
        self.journal = journal
        self.clock = clock
        self.path = path
        self.begun = []

    def __call__(self, max_bytes=10**6):
        file = LineFile(self.path, "the journal")
        file.open()
        lines = JournalLines(self.journal, file, self.clock, max_bytes)
        lines.start()
        self.begun.append(lines)
        return lines

    async def at_end(self):
        for lines in self.begun:
            await lines.close()


@pytest.fixture
def written(journal, clock, tmp_path):
    return Written(journal, clock, tmp_path / "journal.jsonl")


async def test_what_is_written_replays(written, journal, clock, tmp_path):
    cycle(journal, clock)
    lines = written()
    for _ in range(3):
        cycle(journal, clock)
        clock.advance(FLUSH_S)
    await lines.close()

    verdict = replay_file(tmp_path / "journal.jsonl")
    assert (verdict.fault, verdict.cut, verdict.entries) == (None, False, 7)


async def test_a_full_file_is_followed_by_one_that_replays_by_itself(written, journal, clock, tmp_path):
    lines = written(max_bytes=2000)
    gate = journal.gate
    _, (held,) = gate.submit(Operation.INFER, clock.now(), 5)
    clock.advance(1)
    _, (second,) = gate.submit(Operation.INFER, clock.now(), 0)
    gate.submit(Operation.UNLOAD, clock.now(), 60)
    gate.submit(Operation.INFER, clock.now(), 0)
    journal.transitioned("m", ModelState.UNLOADED, ModelState.LOADING)
    while not (tmp_path / "journal.jsonl.1").exists():
        gate.submit(Operation.INFER, clock.now(), 0.5)
        clock.advance(1)
        gate.expire(clock.now())
        lines.flush()
        await asyncio.sleep(0)
    gate.release(held.lease, clock.now())
    gate.release(second.lease, clock.now())
    journal.transitioned("m", ModelState.LOADING, ModelState.READY)
    clock.advance(120)
    await lines.close()

    verdicts = [replay_file(tmp_path / name) for name in ("journal.jsonl.1", "journal.jsonl")]
    assert [it.fault for it in verdicts] == [None, None]
    assert verdicts[1].entries >= 4


async def test_another_server_keeps_the_journal_of_the_last_one(written, journal, tmp_path):
    await written().close()
    first = (tmp_path / "journal.jsonl").read_bytes()
    await written().close()

    assert (tmp_path / "journal.jsonl.1").read_bytes() == first


async def test_a_full_disk_is_told_once_and_ends_the_file_with_a_whole_line(written, journal, clock, tmp_path, caplog):
    lines = written()
    cycle(journal, clock)
    lines.flush()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(100):
                cycle(journal, clock)
                lines.flush()
            await lines.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [it.levelname for it in caplog.records] == ["WARNING"]
    assert "the server goes on without" in caplog.text
    verdict = replay_file(tmp_path / "journal.jsonl")
    assert (verdict.fault, verdict.cut) == (None, False)
    assert verdict.entries > 1


async def test_a_disk_that_does_not_answer_is_given_up_and_holds_no_end_up(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("antiphon.runtime.line_file.MAX_PENDING_BYTES", 8)
    file, answers = LineFile(tmp_path / "lines", "the journal"), threading.Event()
    file.open()
    file._crew.post(answers.wait)
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                file.append(b"line\n")
            await file.close()
    finally:
        answers.set()

    assert [it.levelname for it in caplog.records] == ["WARNING"]
    assert "the disk is too slow" in caplog.text


def test_a_folder_is_no_place_to_write_to(tmp_path):
    with pytest.raises(ConfigError, match="no plain file"):
        LineFile(tmp_path, "the journal").open()


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        LineFile(tmp_path / "none" / "journal", "the journal").open()


def test_an_entry_has_the_claims_terms(journal, clock):
    journal.gate.submit(Operation.INFER, clock.now(), 0.25)

    opened, submitted = journal.between(0, 10)
    assert isinstance(opened, Opened)
    assert isinstance(submitted, Submitted)
    assert (submitted.model, submitted.waiter, submitted.operation, submitted.timeout_s) == ("m", 0, "infer", 0.25)
