"""A whole validation finds out engines that are wrong, each in its own way, and passes the one that is right."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.validation.evidence import CheckName, Evidence, Verdict, faults_of
from validation_stage import SMALL, check_of, suspect, validated

MEASURED = replace(SMALL, throughput_rounds=1, throughput_requests=4)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return validated(suspect("SlowToLoadAdapter", tmp_path_factory.mktemp("model")), replace(MEASURED, counts=(1, 2)))


def test_an_engine_that_is_right_passes_every_check(steady: Evidence) -> None:
    checks = [check for count in steady.modes[0].counts for check in count.checks]
    assert [(check.name, check.verdict, check.reason) for check in checks] == [
        (name, Verdict.PASSED, None) for name in CheckName
    ] * 2


def test_its_evidence_agrees_with_itself(steady: Evidence) -> None:
    assert faults_of(steady) == []


def test_one_start_is_too_little_for_a_listing(steady: Evidence) -> None:
    assert steady.validated_slots(SMALL.modes[0]) == 0


def test_the_ways_that_the_model_has_are_asked_and_no_others(steady: Evidence) -> None:
    ways = {question.partition("/")[0] for question in steady.modes[0].reference}
    assert ways == {"run", "stream"}  # it takes no batches


def test_what_one_slot_refuses_is_asked_beside_good_requests_and_nothing_else_is(steady: Evidence) -> None:
    assert steady.modes[0].refused == ("run/unspeakable", "run/odd-option")  # "4" is no bad request to this engine


def test_what_one_slot_refuses_has_no_reference(steady: Evidence) -> None:
    texts = {question.partition("/")[2] for question in steady.modes[0].reference}
    assert texts == {"one", "two", "three"}


def test_the_server_showed_every_slot_at_work(steady: Evidence) -> None:
    assert [count.starts[0].most_active_slots for count in steady.modes[0].counts] == [1, 2]


def test_memory_is_read_before_after_and_after_each_warm_wave(steady: Evidence) -> None:
    one, two = (count.starts[0].memory for count in steady.modes[0].counts)
    assert [len(memory.quiet_bytes) for memory in (one, two)] == [1 + 5, 1 + 6]  # the last count has waves of its own
    assert two.peak_bytes >= max(two.before_bytes, two.after_bytes, *two.quiet_bytes) > 0


def test_throughput_is_measured_at_each_validated_count(steady: Evidence) -> None:
    assert steady.throughput is not None
    assert [rate.slots for rate in steady.throughput.rates] == [1, 2]


def test_slots_that_write_over_each_other_fail(tmp_path: Path) -> None:
    evidence = validated(suspect("CrosstalkAdapter", tmp_path))
    warm = check_of(evidence, CheckName.WARM)
    assert warm.verdict is Verdict.FAILED
    assert "is not the answer of one slot" in (warm.reason or "")
    assert evidence.verdict() is Verdict.FAILED


def test_answers_that_vary_on_one_slot_are_unverified_not_tolerated(tmp_path: Path) -> None:
    evidence = validated(suspect("FickleAdapter", tmp_path))
    warm = check_of(evidence, CheckName.WARM)
    assert warm.verdict is Verdict.UNVERIFIED
    assert "varies on one slot" in (warm.reason or "")
    assert evidence.verdict() is Verdict.UNVERIFIED


def test_memory_that_every_run_keeps_fails(tmp_path: Path) -> None:
    evidence = validated(suspect("LeakyAdapter", tmp_path))
    memory = check_of(evidence, CheckName.MEMORY)
    assert memory.verdict is Verdict.FAILED
    assert "memory grew with every wave" in (memory.reason or "")
    assert check_of(evidence, CheckName.WARM).verdict is Verdict.PASSED  # its answers are right


def test_a_bad_request_that_spoils_its_neighbours_fails(tmp_path: Path) -> None:
    evidence = validated(suspect("TouchyAdapter", tmp_path), replace(SMALL, warm_waves_at_most_slots=2))
    assert check_of(evidence, CheckName.WARM).verdict is Verdict.PASSED
    assert check_of(evidence, CheckName.INVALID).verdict is Verdict.FAILED


def test_an_engine_that_answers_otherwise_with_more_slots_fails_everywhere(tmp_path: Path) -> None:
    evidence = validated(suspect("CrowdedAdapter", tmp_path), MEASURED)
    compared = {check.name: check.verdict for check in evidence.modes[0].counts[0].checks}
    assert {name for name, verdict in compared.items() if verdict is Verdict.FAILED} == set(CheckName) - {
        CheckName.OVERLAP,
        CheckName.MEMORY,
    }
    assert evidence.throughput is None  # what is wrong is not recommended
