"""Evidence files: written whole, read strictly, and refused when they contradict themselves."""

import json
from pathlib import Path

import msgspec
import pytest

from antiphon.validation.errors import EvidenceError
from antiphon.validation.evidence import Verdict, read_evidence, write_evidence
from antiphon.vocabulary.tasks import Mode
from evidence_samples import count_of, evidence_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "evidence.json"
    write_evidence(evidence_of(2), path)
    return path


def test_what_was_written_is_read_again(file: Path) -> None:
    assert read_evidence(file) == evidence_of(2).sealed()


def test_equal_evidence_gives_equal_files(file: Path, tmp_path: Path) -> None:
    write_evidence(evidence_of(2), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"compared": 9', '"compared": 8'),
        ('"2026-11-30"', '"2026-12-30"'),
        ('"peak_bytes": 3', '"peak_bytes": 2'),
        ('"processor": "a processor"', '"processor": "a better one"'),
    ],
)
def test_a_file_that_was_changed_is_refused(file: Path, old: str, new: str) -> None:
    content = file.read_text()
    assert old in content
    file.write_text(content.replace(old, new))
    with pytest.raises(EvidenceError, match=r"evidence\.json: it was changed after it was written"):
        read_evidence(file)


def test_a_verdict_that_its_digests_do_not_bear_out_is_refused_even_under_a_new_seal(tmp_path: Path) -> None:
    count = msgspec.structs.replace(count_of(1), digests={"run/a": ("another",)})
    path = tmp_path / "forged.json"
    write_evidence(evidence_of(1, counts=(count,)), path)
    with pytest.raises(EvidenceError, match="its digests are not those of the reference"):
        read_evidence(path)


def test_a_reference_that_varies_cannot_have_been_passed(tmp_path: Path) -> None:
    varying = {"run/a": ("1", "2")}
    count = msgspec.structs.replace(count_of(1), digests=varying)
    path = tmp_path / "forged.json"
    write_evidence(evidence_of(1, counts=(count,), reference=varying), path)
    with pytest.raises(EvidenceError, match="its reference varies"):
        read_evidence(path)


def test_a_check_that_is_missing_is_noticed(tmp_path: Path) -> None:
    count = count_of(1)
    path = tmp_path / "short.json"
    write_evidence(evidence_of(1, counts=(msgspec.structs.replace(count, checks=count.checks[1:]),)), path)
    with pytest.raises(EvidenceError, match="its checks are not those that there are"):
        read_evidence(path)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    write_evidence(msgspec.structs.replace(evidence_of(1), schema=0), path)
    with pytest.raises(EvidenceError, match="its schema is 0, and this antiphon reads 1"):
        read_evidence(path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"schema": 1}', "[" * 100_000], ids=["empty", "list", "cut", "fields", "deep"]
)
def test_what_is_no_evidence_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)
    with pytest.raises(EvidenceError, match=r"odd\.json is no evidence"):
        read_evidence(path)


def test_an_unknown_field_is_refused(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
    with pytest.raises(EvidenceError, match="unknown field `more`"):
        read_evidence(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=r"none\.json cannot be read"):
        read_evidence(tmp_path / "none.json")


def test_counts_are_validated_up_to_the_first_that_did_not_pass_everything() -> None:
    counts = (count_of(1), count_of(2), count_of(3, Verdict.UNVERIFIED), count_of(4))
    evidence = evidence_of(4, counts=counts)
    assert evidence.validated_slots(Mode.OFFLINE) == 2
    assert evidence.validated_slots(Mode.STREAMING) == 0
    assert evidence.verdict() is Verdict.UNVERIFIED


def test_two_starts_validate_nothing() -> None:
    assert evidence_of(1, counts=(count_of(1, starts=2),)).validated_slots(Mode.OFFLINE) == 0


def test_a_failure_is_the_worst_verdict() -> None:
    counts = (count_of(1, Verdict.UNVERIFIED), count_of(2, Verdict.FAILED))
    assert evidence_of(2, counts=counts).verdict() is Verdict.FAILED
