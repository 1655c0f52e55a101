"""Every line of the audit list that ships is borne out by the evidence that it names."""

import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from antiphon.runtime.audit import Audit, EvidenceFile, audits
from antiphon.validation.evidence import Evidence, Verdict, write_evidence
from antiphon.validation.listing import faults_of_line
from antiphon.vocabulary.tasks import Mode, Task
from evidence_samples import count_of, evidence_of

ROOT = Path(__file__).parents[2]
TEST_DOUBLES = {"controlled"}
LISTED = [audit for audit in audits() if audit.family not in TEST_DOUBLES]
OFFLINE = frozenset({Mode.OFFLINE})


@pytest.mark.parametrize("audit", LISTED, ids=lambda audit: audit.family)
def test_a_listed_family_has_evidence_for_every_slot_and_mode(audit: Audit) -> None:
    assert list(faults_of_line(audit, ROOT)) == []


def test_the_evidence_is_named_by_paths_of_the_source_tree() -> None:
    named = [Path(it.file) for audit in LISTED for it in audit.evidence]
    assert {path.parent for path in named} == {Path("docs/evidence")}
    assert len(named) == len(set(named))


def line(folder: Path, evidence: Evidence, *, modes: frozenset[Mode] = OFFLINE) -> Audit:
    """A line of the list with two slots that names this evidence."""
    folder.mkdir(exist_ok=True)
    path = folder / "e.json"
    write_evidence(evidence, path)
    named = EvidenceFile("e.json", hashlib.sha256(path.read_bytes()).hexdigest())
    return Audit("suspect", "cpu", frozenset({Task.TTS}), modes, 2, (named,))


def test_a_line_with_evidence_for_all_its_slots_is_borne_out(tmp_path: Path) -> None:
    assert list(faults_of_line(line(tmp_path, evidence_of(2)), tmp_path)) == []


@pytest.mark.parametrize(
    ("evidence", "fault"),
    [
        (evidence_of(1), "1 slots are validated, and 2 are listed"),
        (evidence_of(2, counts=(count_of(1), count_of(2, Verdict.UNVERIFIED))), "1 slots are validated"),
        (evidence_of(2, counts=(count_of(1), count_of(2, Verdict.FAILED))), "1 slots are validated"),
        (evidence_of(2, counts=(count_of(2),)), "0 slots are validated"),
        (evidence_of(2, modes=(Mode.STREAMING,)), "offline: 0 slots are validated"),
        (evidence_of(2, family="another"), "it is of another on cpu"),
        (evidence_of(2, device="cuda"), "it is of suspect on cuda"),
        (evidence_of(2, task=Task.VAD), "it is of the task vad"),
    ],
)
def test_evidence_that_shows_something_else_bears_nothing_out(tmp_path: Path, evidence: Evidence, fault: str) -> None:
    assert any(fault in told for told in faults_of_line(line(tmp_path, evidence), tmp_path))


def test_evidence_for_one_mode_does_not_stand_for_the_other(tmp_path: Path) -> None:
    (fault,) = faults_of_line(line(tmp_path, evidence_of(2), modes=frozenset(Mode)), tmp_path)
    assert fault == "suspect: e.json: streaming: 0 slots are validated, and 2 are listed"


def both_modes(folder: Path, *evidence: Evidence) -> Audit:
    """A line that names these files, each of one mode."""
    lines = [line(folder / str(number), it) for number, it in enumerate(evidence)]
    named = [EvidenceFile(f"{number}/e.json", it.evidence[0].sha256) for number, it in enumerate(lines)]
    return replace(lines[0], modes=frozenset(Mode), evidence=tuple(named))


def test_the_modes_of_one_model_may_be_validated_apart(tmp_path: Path) -> None:
    audit = both_modes(tmp_path, evidence_of(2), evidence_of(2, modes=(Mode.STREAMING,)))
    assert list(faults_of_line(audit, tmp_path)) == []


def test_a_mode_of_another_model_does_not_count(tmp_path: Path) -> None:
    offline, streaming = evidence_of(2), evidence_of(2, modes=(Mode.STREAMING,))
    of_another = msgspec.structs.replace(streaming, model=msgspec.structs.replace(streaming.model, id="another"))
    assert list(faults_of_line(both_modes(tmp_path, offline, of_another), tmp_path)) == [
        "suspect: 0/e.json: streaming: 0 slots are validated, and 2 are listed",
        "suspect: 1/e.json: offline: 0 slots are validated, and 2 are listed",
    ]


def test_a_file_that_was_written_anew_is_not_the_one_that_was_listed(tmp_path: Path) -> None:
    audit = line(tmp_path, evidence_of(2))
    write_evidence(evidence_of(3), tmp_path / "e.json")  # whole, and sealed
    (fault, *_) = faults_of_line(audit, tmp_path)
    assert fault == "suspect: e.json is not the file that was listed: its SHA-256 differs"


def test_a_tampered_file_fails(tmp_path: Path) -> None:
    audit = line(tmp_path, evidence_of(2))
    path = tmp_path / "e.json"
    path.write_text(path.read_text().replace('"compared": 9', '"compared": 10'))
    (fault, *_) = faults_of_line(audit, tmp_path)
    assert "its seal is broken" in fault


def test_a_line_without_evidence_is_not_borne_out(tmp_path: Path) -> None:
    audit = Audit("suspect", "cpu", frozenset({Task.TTS}), OFFLINE, 2, ())
    assert list(faults_of_line(audit, tmp_path)) == [
        "suspect: it names no evidence",
        "suspect: it names no evidence for tts",
    ]
