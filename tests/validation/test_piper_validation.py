"""The smallest validation of a real engine: Piper at two slots, in processes, and its evidence.

With `threads: auto` one slot speaks on all cores, and each of two on one.
"""

from pathlib import Path

import pytest

from antiphon.packages import default_models_root
from antiphon.validation.evidence import CheckName, Verdict, read_evidence, write_evidence
from antiphon.validation.facts import surroundings_of
from antiphon.validation.inputs import inputs_for
from antiphon.validation.plan import Plan
from antiphon.validation.run import run_validation
from antiphon.validation.subjects import find_material, find_subject
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode

pytestmark = [pytest.mark.engine, pytest.mark.slow]
PLAN = Plan((2,), (Mode.OFFLINE,), starts=1, warm_waves_at_most_slots=8, reference_starts=1, reference_repeats=1)
TEXTS = ("One.", "A second sentence, which is long enough for two threads.")


def test_piper_on_two_slots_answers_as_on_one(tmp_path: Path) -> None:
    root = default_models_root()
    subject, capability = find_subject(
        "piper-en-joe", config=None, models_root=root, families=(), threads="auto", isolation=Isolation.PROCESS
    )
    inputs = inputs_for(subject.spec.task, capability, find_material(subject, TEXTS, (), root))
    surroundings = surroundings_of(subject.spec, ())
    evidence = run_validation(subject, inputs, PLAN, surroundings, lambda progress: None)
    write_evidence(evidence, tmp_path / "piper.json")
    assert evidence.model.threads == "auto"
    (run,) = read_evidence(tmp_path / "piper.json").modes
    compared = [(check.name, check.verdict, check.reason) for count in run.counts for check in count.checks]
    assert compared == [(name, Verdict.PASSED, None) for name in CheckName]
    assert {"run/text-1", "stream/text-2"} <= run.reference.keys()
    assert {"piper-tts", "onnxruntime", "numpy"} <= evidence.versions.keys()
    assert "en_US-joe-medium.onnx" in {file.path for file in evidence.model.files}
