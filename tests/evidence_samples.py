"""Evidence as small as it can be, for tests of its readers."""

from collections.abc import Mapping, Sequence

from antiphon.validation.evidence import (
    SCHEMA,
    Check,
    CheckName,
    Count,
    Evidence,
    InputFact,
    Memory,
    ModelFacts,
    ModeRun,
    PlanFacts,
    Start,
    Verdict,
)
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task

REFERENCE: Mapping[str, tuple[str, ...]] = {"run/a": ("1",)}


def count_of(slots: int, verdict: Verdict = Verdict.PASSED, starts: int = 3) -> Count:
    """A count whose check `warm` came to this verdict, and which passed the others."""
    start = Start(waves=1, answers=9, most_active_slots=slots, memory=Memory(1, 3, 1, (2, 2)))
    checks = tuple(Check(name, verdict if name is CheckName.WARM else Verdict.PASSED, 9) for name in CheckName)
    return Count(slots, checks, dict(REFERENCE), (start,) * starts)


def evidence_of(
    slots: int,
    *,
    counts: Sequence[Count] | None = None,
    modes: Sequence[Mode] = (Mode.OFFLINE,),
    reference: Mapping[str, tuple[str, ...]] = REFERENCE,
    family: str = "suspect",
    task: Task = Task.TTS,
    device: str = "cpu",
) -> Evidence:
    """Evidence of a model that passed everything at 1 to `slots`, unless the counts are given."""
    passed = tuple(counts or map(count_of, range(1, slots + 1)))
    return Evidence(
        schema=SCHEMA,
        date="2026-11-30",
        model=ModelFacts("m", family, task, device, 1, Isolation.PROCESS, {}, {}, ()),
        machine={"processor": "a processor"},
        versions={"python": "CPython 3.11"},
        plan=PlanFacts(3, 1, 1, 1, 1),
        inputs=(InputFact("a", "0"),),
        modes=tuple(ModeRun(mode, (), dict(reference), passed) for mode in modes),
        throughput=None,
    )
