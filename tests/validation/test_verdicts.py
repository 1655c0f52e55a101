"""Verdicts follow from what was seen, and nothing is tolerated."""

from antiphon.validation.evidence import CheckName, Memory, Verdict
from antiphon.validation.verdicts import Finding, Seen, Trouble, checks_of, digests_seen, memory_finding, unasked

MIB = 1024 * 1024
REFERENCE = {"run/a": ("1",), "run/b": ("2", "3")}


def warm(*seen, troubles=()):
    """The check `warm` of one finding."""
    checks = checks_of([Finding(CheckName.WARM, tuple(seen), tuple(troubles))], REFERENCE)
    return next(check for check in checks if check.name is CheckName.WARM)


def grown(*quiet_mib):
    return Memory(100 * MIB, 900 * MIB, 100 * MIB, tuple(mib * MIB for mib in quiet_mib))


def test_the_answer_of_one_slot_passes():
    check = warm(Seen("run/a", "1"))
    assert (check.verdict, check.compared, check.reason) == (Verdict.PASSED, 1, None)


def test_any_other_answer_fails():
    check = warm(Seen("run/a", "1"), Seen("run/a", "9"))
    assert (check.verdict, check.reason) == (Verdict.FAILED, "run/a is not the answer of one slot")


def test_no_answer_fails_with_its_fault():
    assert warm(Seen("run/a", None, "HTTP 500: oh")).reason == "run/a: HTTP 500: oh"


def test_what_varies_on_one_slot_is_unverified_whatever_the_answer_is():
    for digest in ("2", "3", "4"):
        assert warm(Seen("run/b", digest)).verdict is Verdict.UNVERIFIED


def test_a_failure_is_told_before_what_is_unverified():
    check = warm(Seen("run/b", "2"), Seen("run/a", "9"))
    assert (check.verdict, check.reason) == (Verdict.FAILED, "run/a is not the answer of one slot")


def test_a_question_without_a_reference_fails():
    assert warm(Seen("run/c", "1")).verdict is Verdict.FAILED


def test_a_trouble_decides_beside_right_answers():
    check = warm(Seen("run/a", "1"), troubles=[Trouble(Verdict.UNVERIFIED, "it was too quick")])
    assert (check.verdict, check.reason) == (Verdict.UNVERIFIED, "it was too quick")


def test_a_check_that_nothing_was_seen_for_is_unverified():
    assert {check.verdict for check in checks_of([], REFERENCE)} == {Verdict.UNVERIFIED}
    assert warm().reason == "nothing was compared"


def test_of_many_reasons_three_are_told():
    reason = warm(*(Seen("run/a", None, str(number)) for number in range(5))).reason
    assert reason == "run/a: 0; run/a: 1; run/a: 2; and 2 more"


def test_every_digest_of_a_question_is_kept_once():
    seen = (Seen("run/a", "2"), Seen("run/a", "1"), Seen("run/a", "2"), Seen("run/b", None, "no"))
    assert digests_seen([Finding(CheckName.COLD, seen)]) == {"run/a": ("1", "2")}


def test_questions_that_were_never_answered_leave_their_check_unverified():
    (finding,) = unasked({"run/a": ("1",)}, REFERENCE)
    assert [(it.verdict, it.reason) for it in finding.troubles] == [(Verdict.UNVERIFIED, "run/b was never answered")]
    assert unasked(REFERENCE, REFERENCE) == []


def test_memory_that_grows_in_jumps_is_no_leak():
    assert memory_finding([grown(300, 320, 400, 457, 464, 464, 550)]).troubles == ()


def test_memory_that_grows_with_every_wave_is_a_leak():
    (trouble,) = memory_finding([grown(360, 380, 400, 420, 440, 460, 480)]).troubles
    assert (trouble.verdict, trouble.reason) == (
        Verdict.FAILED,
        "memory grew with every wave, by 80 MiB a start or more",
    )


def test_a_leak_shows_in_every_start():
    leaks, jumps = grown(360, 380, 400, 420, 440, 460, 480), grown(360, 380, 400, 420, 440, 460, 460)
    assert memory_finding([leaks, jumps]).troubles == ()
    assert memory_finding([leaks, leaks]).troubles


def test_growth_within_a_tenth_of_the_model_is_allowed():
    assert memory_finding([grown(380, 390, 400, 410, 420, 430)]).troubles == ()


def test_arenas_that_fill_while_slots_begin_to_meet_are_no_leak():
    """What Piper took on two slots, beside other work: two waves that look like a leak, and then hardly anything."""
    series = (398, 401, 446, 446, 449, 450, 450, 454, 454, 454, 459, 459, 460)
    for seen in range(6, len(series) + 1):
        assert memory_finding([grown(*series[:seen])]).troubles == ()


def test_memory_that_was_read_too_seldom_is_unverified():
    enough = grown(380, 390, 400, 410, 420, 430)
    for memories in ([], [grown(400, 420)], [grown(400, 420, 440, 460, 480)], [enough, grown()], [grown(*[0] * 9)]):
        (trouble,) = memory_finding(memories).troubles
        assert trouble.verdict is Verdict.UNVERIFIED
