"""Whether a line of the audit list is borne out by the evidence that it names."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from antiphon.runtime.audit import Audit, EvidenceFile
from antiphon.validation.errors import EvidenceError
from antiphon.validation.evidence import Evidence, read_evidence


def faults_of_line(audit: Audit, root: Path) -> Iterator[str]:
    """What is missing for a line; `root` is where the paths of its evidence start. Nothing where all is borne out.

    Each file must be for the line's family, device and one of its tasks, and validate its slots in every mode.
    """
    if not audit.evidence:
        yield f"{audit.family}: it names no evidence"
    tasks = set()
    for named in audit.evidence:
        try:
            evidence = _read(named, root)
        except EvidenceError as error:
            yield f"{audit.family}: {error.message}"
            continue
        tasks.add(evidence.model.task)
        yield from (f"{audit.family}: {named.file}: {fault}" for fault in _shortcomings(audit, evidence))
    for task in audit.tasks - tasks:
        yield f"{audit.family}: it names no evidence for {task}"


def _read(named: EvidenceFile, root: Path) -> Evidence:
    path = root / named.file
    evidence = read_evidence(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != named.sha256:
        raise EvidenceError(f"{named.file} is not the file that was listed: its SHA-256 differs")
    return evidence


def _shortcomings(audit: Audit, evidence: Evidence) -> Iterator[str]:
    model = evidence.model
    if (model.family, model.device) != (audit.family, audit.device):
        yield f"it is of {model.family} on {model.device}"
    if model.task not in audit.tasks:
        yield f"it is of the task {model.task}"
    for mode in sorted(audit.modes):
        if (validated := evidence.validated_slots(mode)) < audit.max_slots:
            yield f"{mode}: {validated} slots are validated, and {audit.max_slots} are listed"
