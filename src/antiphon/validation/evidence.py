"""The evidence file: what a validation saw, as JSON with a schema version and a seal. It decides no verdict.

`docs/validation.md` describes the format. Objects keep the order of the fields below, mappings that of their keys.
"""

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from antiphon.validation.errors import EvidenceError
from antiphon.vocabulary.spec import MAX_SLOTS
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task

SCHEMA = 1
MIN_STARTS = 3
"""How many fresh starts a count needs before it may be listed."""


class Verdict(StrEnum):
    """What came of a check. `unverified` is no lesser kind of passing: it says that nothing was shown."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIED = "unverified"


class CheckName(StrEnum):
    """The checks of each count, in their order; docs/validation.md says what each does."""

    COLD = "cold"
    WARM = "warm"
    OVERLAP = "overlap"
    INVALID = "invalid"
    RELOAD = "reload"
    UNLOAD_IN_LOAD = "unload_in_load"
    BULK_UNLOAD_IN_LOAD = "bulk_unload_in_load"
    MEMORY = "memory"


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file: unknown fields are refused."""


class FileFact(_Part, frozen=True):
    """One file of the model; `path` is relative to the model's folder."""

    path: str
    sha256: str
    size_bytes: int


class ModelFacts(_Part, frozen=True):
    """The model and how it was run: its spec, but for the mode and the slots, which vary."""

    id: str
    family: str
    task: Task
    device: str
    threads: int | Literal["auto"]
    isolation: Isolation
    load_options: dict[str, object]
    session_options: dict[str, object]
    files: tuple[FileFact, ...]


class PlanFacts(_Part, frozen=True):
    """How much was done: `starts` a count, mixed warm waves a start, and how often the reference was asked."""

    starts: int
    warm_waves: int
    warm_waves_at_most_slots: int
    reference_starts: int
    reference_repeats: int


class InputFact(_Part, frozen=True):
    """One input, and the digest of what it consists of."""

    name: str
    sha256: str


class Memory(_Part, frozen=True):
    """The proportional set size of the server with all its processes in one start.

    `before_bytes` is with no model loaded, `after_bytes` after the last unload. `quiet_bytes` is the part of it
    that no file backs, after each warm wave: libraries are shared with other programs, and weigh more when those end.
    """

    before_bytes: int
    peak_bytes: int
    after_bytes: int
    quiet_bytes: tuple[int, ...]


class Start(_Part, frozen=True):
    """One fresh start of a server."""

    waves: int
    answers: int
    most_active_slots: int
    memory: Memory


class Check(_Part, frozen=True):
    """A verdict; `compared` answers were held against the reference, `reason` says what was wrong."""

    name: CheckName
    verdict: Verdict
    compared: int
    reason: str | None = None


class Count(_Part, frozen=True):
    """Everything about one number of slots; `digests` has every digest that was seen for a question."""

    slots: int
    checks: tuple[Check, ...]
    digests: dict[str, tuple[str, ...]]
    starts: tuple[Start, ...]


class ModeRun(_Part, frozen=True):
    """One mode; `reference` has the digests that one slot gave, serially: more than one where they varied."""

    mode: Mode
    refused: tuple[str, ...]
    reference: dict[str, tuple[str, ...]]
    counts: tuple[Count, ...]


class Rate(_Part, frozen=True):
    """Requests a second at one number of slots with as many clients; the median of rounds and their extremes."""

    slots: int
    median: float
    low: float
    high: float


class Throughput(_Part, frozen=True):
    """What was measured at each validated count, and the count that it speaks for."""

    rates: tuple[Rate, ...]
    recommended_slots: int


class Evidence(_Part, frozen=True):
    """A whole file. `seal` is the SHA-256 of the file as it is with an empty seal."""

    schema: int
    date: str
    model: ModelFacts
    machine: dict[str, str]
    versions: dict[str, str]
    plan: PlanFacts
    inputs: tuple[InputFact, ...]
    modes: tuple[ModeRun, ...]
    throughput: Throughput | None
    seal: str = ""

    def sealed(self) -> "Evidence":
        """The same with its seal."""
        return msgspec.structs.replace(self, seal=_seal(self))

    def verdict(self) -> Verdict:
        """The worst of all verdicts."""
        verdicts = {check.verdict for run in self.modes for count in run.counts for check in count.checks}
        return next(it for it in (Verdict.FAILED, Verdict.UNVERIFIED, Verdict.PASSED) if it in verdicts)

    def validated_slots(self, mode: Mode) -> int:
        """The most slots up to which every count passed every check in enough starts; 0 where not even one did."""
        counts = {count.slots: count for run in self.modes if run.mode is mode for count in run.counts}
        most = 0
        while most < MAX_SLOTS and (count := counts.get(most + 1)) is not None and has_passed(count):
            most += 1
        return most


def has_passed(count: Count) -> bool:
    """Whether a count passed every check, in enough fresh starts."""
    passed = {check.name for check in count.checks if check.verdict is Verdict.PASSED}
    return passed == set(CheckName) and len(count.starts) >= MIN_STARTS


def write_evidence(evidence: Evidence, path: Path) -> None:
    """Write a sealed file, whole; raises EvidenceError."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(_encoded(evidence.sealed()))
        draft.replace(path)
    except OSError as error:
        raise EvidenceError(f"{path.name} cannot be written: {error.strerror}") from error


def read_evidence(path: Path) -> Evidence:
    """Read a file and check that it agrees with itself; raises EvidenceError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path.name} cannot be read: {error.strerror}") from error
    try:
        evidence = msgspec.json.decode(content, type=Evidence)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EvidenceError(f"{path.name} is no evidence: {error}") from error
    for fault in faults_of(evidence):
        raise EvidenceError(f"{path.name}: {fault}")
    return evidence


def faults_of(evidence: Evidence) -> list[str]:
    """What a file claims against its own numbers; empty where all agrees."""
    if evidence.schema != SCHEMA:
        return [f"its schema is {evidence.schema}, and this antiphon reads {SCHEMA}"]
    faults = [] if evidence.seal == _seal(evidence) else ["it was changed after it was written: its seal is broken"]
    if not any(run.counts for run in evidence.modes):
        faults.append("it has no counts")
    for run in evidence.modes:
        for count in run.counts:
            faults += [f"{run.mode}, {count.slots} slots: {fault}" for fault in _contradictions(run, count)]
    return faults


def _contradictions(run: ModeRun, count: Count) -> list[str]:
    """Where verdicts do not follow from the digests beside them."""
    faults = []
    if [check.name for check in count.checks] != list(CheckName):
        faults.append("its checks are not those that there are")
    passed = all(check.verdict is Verdict.PASSED for check in count.checks)
    if passed and count.digests != run.reference:
        faults.append("it is said to have passed, and its digests are not those of the reference")
    if passed and any(len(digests) != 1 for digests in run.reference.values()):
        faults.append("it is said to have passed, and its reference varies")
    if passed and not all(check.compared for check in count.checks if check.name in COMPARING):
        faults.append("it is said to have passed, and a check compared nothing")
    return faults


COMPARING = frozenset(CheckName) - {CheckName.OVERLAP, CheckName.MEMORY}
"""The checks that hold answers against the reference."""


def _seal(evidence: Evidence) -> str:
    unsealed = msgspec.structs.replace(evidence, seal="")
    return hashlib.sha256(_encoded(unsealed)).hexdigest()


def _encoded(evidence: Evidence) -> bytes:
    return msgspec.json.format(msgspec.json.encode(evidence, order="deterministic"), indent=1) + b"\n"
