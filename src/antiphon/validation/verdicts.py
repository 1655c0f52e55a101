"""From what was seen to verdicts: pure, it asks nothing and measures nothing.

What differs on one slot, asked again and again, has no reference: a check that met it is `unverified`. There is no
tolerance anywhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from antiphon.validation.evidence import COMPARING, Check, CheckName, Memory, Verdict

_MIB = 1024 * 1024
LEAK_ALLOWANCE_BYTES = 16 * _MIB
"""What memory may grow by in all mixed waves of a start; or a tenth of what the model takes, where that is more."""
LEAST_STEP_BYTES = _MIB
"""A wave that adds no more than this is taken to add nothing."""
SETTLING_WAVES = 2
"""So many mixed waves are not judged. Allocators keep what the slots took at the same time, and the most that this can
be shows only when long inputs meet, which the machine's load decides."""
_FEWEST_STEPS = 3
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer: the digest of it, or the fault that there is instead."""

    question: str
    digest: str | None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something other than an answer that decides a check."""

    verdict: Verdict
    reason: str


def failed(reason: str) -> Trouble:
    """A trouble that fails its check."""
    return Trouble(Verdict.FAILED, reason)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one step of one start saw."""

    check: CheckName
    seen: tuple[Seen, ...] = ()
    troubles: tuple[Trouble, ...] = ()


Reference = Mapping[str, Sequence[str]]
"""For each question the digests that one slot gave; more than one where they varied."""


def checks_of(findings: Iterable[Finding], reference: Reference) -> tuple[Check, ...]:
    """One verdict for every check that there is, over the findings of all starts."""
    by_name: dict[CheckName, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_name[finding.check].append(finding)
    return tuple(_check(name, by_name[name], reference) for name in CheckName)


def digests_seen(findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """Every digest that was seen for each question."""
    seen: dict[str, set[str]] = defaultdict(set)
    for finding in findings:
        for it in finding.seen:
            if it.digest is not None:
                seen[it.question].add(it.digest)
    return {question: tuple(sorted(digests)) for question, digests in seen.items()}


def unasked(answered: Mapping[str, Sequence[str]], reference: Reference) -> list[Finding]:
    """What a plan was too small for: questions that were not answered even once."""
    missing = sorted(set(reference) - set(answered))
    troubles = [Trouble(Verdict.UNVERIFIED, f"{question} was never answered") for question in missing]
    return [Finding(CheckName.WARM, (), tuple(troubles))] if troubles else []


def memory_finding(memories: Sequence[Memory]) -> Finding:
    """Whether memory grows with every wave, in every start: allocators grow too, but in jumps, and not each time.

    The first warm wave asks for the longest input on every slot at once, and the next ones mix inputs, so that what
    threads keep for themselves is there before the count begins.
    """
    grown = [_steady_growth_bytes(memory) for memory in memories]
    if None in grown or not grown:
        return Finding(CheckName.MEMORY, (), (Trouble(Verdict.UNVERIFIED, "memory was read too seldom to tell"),))
    least_bytes = min(it for it in grown if it is not None)
    if not least_bytes:
        return Finding(CheckName.MEMORY)
    reason = f"memory grew with every wave, by {least_bytes // _MIB} MiB a start or more"
    return Finding(CheckName.MEMORY, (), (failed(reason),))


def _steady_growth_bytes(memory: Memory) -> int | None:
    """By how much memory grew over the mixed waves; 0 where one of them added nothing, None where it is unknown."""
    quiet = memory.quiet_bytes[SETTLING_WAVES:]
    if len(quiet) <= _FEWEST_STEPS or not memory.before_bytes or not all(quiet):
        return None
    steps = [after - before for before, after in pairwise(quiet)]
    allowed_bytes = max(LEAK_ALLOWANCE_BYTES, (quiet[0] - memory.before_bytes) // 10)
    return sum(steps) if min(steps) > LEAST_STEP_BYTES and sum(steps) > allowed_bytes else 0


def _check(name: CheckName, findings: Sequence[Finding], reference: Reference) -> Check:
    seen = [it for finding in findings for it in finding.seen]
    troubles = [trouble for finding in findings for trouble in finding.troubles]
    for it in seen:
        troubles += _trouble(it, reference)
    if not findings or (name in COMPARING and not seen and not troubles):
        troubles.append(Trouble(Verdict.UNVERIFIED, "nothing was compared"))
    for verdict in (Verdict.FAILED, Verdict.UNVERIFIED):
        reasons = list(dict.fromkeys(trouble.reason for trouble in troubles if trouble.verdict is verdict))
        if reasons:
            return Check(name, verdict, len(seen), _joined(reasons))
    return Check(name, Verdict.PASSED, len(seen))


def _trouble(seen: Seen, reference: Reference) -> list[Trouble]:
    if seen.fault is not None:
        return [failed(f"{seen.question}: {seen.fault}")]
    known = reference.get(seen.question, ())
    if len(known) > 1:
        return [Trouble(Verdict.UNVERIFIED, f"{seen.question} varies on one slot")]
    if seen.digest not in known:
        return [failed(f"{seen.question} is not the answer of one slot")]
    return []


def _joined(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - _MOST_SHOWN} more" if len(reasons) > _MOST_SHOWN else ""
    return "; ".join(reasons[:_MOST_SHOWN]) + more
