"""Whether a line of the audit list is borne out by the evidence that it names."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from antiphon.runtime.audit import Audit, EvidenceFile
from antiphon.validation.errors import EvidenceError
from antiphon.validation.evidence import Evidence, read_evidence


def faults_of_line(audit: Audit, root: Path) -> Iterator[str]:
    """What is missing for a line; `root` is where the paths of its evidence start. Nothing where all is borne out.

    Each model must be of the line's family, device and one of its tasks, and its files together must validate the
    line's slots in every mode: the modes of one model may be validated apart.
    """
    if not audit.evidence:
        yield f"{audit.family}: it names no evidence"
    read: list[tuple[str, Evidence]] = []
    for named in audit.evidence:
        try:
            read.append((named.file, _read(named, root)))
        except EvidenceError as error:
            yield f"{audit.family}: {error.message}"
    tasks = set()
    while read:
        model = read[0][1].model
        its = [(file, evidence) for file, evidence in read if evidence.model == model]
        read = [(file, evidence) for file, evidence in read if evidence.model != model]
        tasks.add(model.task)
        files = ", ".join(file for file, _ in its)
        for fault in _shortcomings(audit, [evidence for _, evidence in its]):
            yield f"{audit.family}: {files}: {fault}"
    for task in audit.tasks - tasks:
        yield f"{audit.family}: it names no evidence for {task}"


def _read(named: EvidenceFile, root: Path) -> Evidence:
    path = root / named.file
    evidence = read_evidence(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != named.sha256:
        raise EvidenceError(f"{named.file} is not the file that was listed: its SHA-256 differs")
    return evidence


def _shortcomings(audit: Audit, of_one_model: Sequence[Evidence]) -> Iterator[str]:
    model = of_one_model[0].model
    if (model.family, model.device) != (audit.family, audit.device):
        yield f"it is of {model.family} on {model.device}"
    if model.task not in audit.tasks:
        yield f"it is of the task {model.task}"
    for mode in sorted(audit.modes):
        if (validated := max(it.validated_slots(mode) for it in of_one_model)) < audit.max_slots:
            yield f"{mode}: {validated} slots are validated, and {audit.max_slots} are listed"
