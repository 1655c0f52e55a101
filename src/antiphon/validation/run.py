"""A whole validation: the reference first, then every count in its fresh starts, then one evidence file's content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from antiphon.validation import evidence as told
from antiphon.validation.facts import Surroundings
from antiphon.validation.inputs import Inputs
from antiphon.validation.plan import Plan, slots_text
from antiphon.validation.questions import Deck
from antiphon.validation.reference import Standard, measure_reference
from antiphon.validation.site import Subject, fresh_start
from antiphon.validation.throughput import measure_throughput
from antiphon.validation.trials import StartReport, Trial
from antiphon.validation.verdicts import checks_of, digests_seen, memory_finding, unasked
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a validation is: `done` of `total` starts are over, and what it does now."""

    done: int
    total: int
    what: str


OnProgress = Callable[[Progress], None]


def run_validation(
    subject: Subject, inputs: Inputs, plan: Plan, surroundings: Surroundings, on_progress: OnProgress
) -> told.Evidence:
    """Validate one model, and return what to write; it takes minutes. Raises ValidationError, BenchError."""
    course = _Course(subject, plan, on_progress)
    runs = [course.mode(mode, inputs) for mode in plan.modes]
    return told.Evidence(
        schema=told.SCHEMA,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        model=_model_facts(subject.spec, surroundings.files),
        machine=dict(surroundings.machine),
        versions=dict(surroundings.versions),
        plan=_plan_facts(plan),
        inputs=tuple(told.InputFact(it.name, it.sha256()) for it in (*inputs.good, *inputs.bad)),
        modes=tuple(runs),
        throughput=course.throughput,
    ).sealed()


class _Course:
    """A validation under way: the modes one after another, and the progress of it."""

    def __init__(self, subject: Subject, plan: Plan, on_progress: OnProgress) -> None:
        self.throughput: told.Throughput | None = None
        self._subject = subject
        self._plan = plan
        self._on_progress = on_progress
        self._started = 0

    def mode(self, mode: Mode, inputs: Inputs) -> told.ModeRun:
        """The reference of one mode, then its counts; throughput is measured in the first."""
        standard = measure_reference(
            self._subject, mode, inputs, self._plan, lambda start: self._begin(f"{mode}: reference {start}")
        )
        counts = [self._count(mode, slots, standard) for slots in self._plan.counts]
        if self._plan.throughput_rounds and self.throughput is None:
            self.throughput = self._measured(mode, standard, counts)
        refused = tuple(question.name for question in standard.refused)
        return told.ModeRun(mode, refused, standard.digests, tuple(counts))

    def _count(self, mode: Mode, slots: int, standard: Standard) -> told.Count:
        deck = Deck(standard.questions)
        reports = [self._start(mode, slots, start, deck, standard) for start in range(1, self._plan.starts + 1)]
        findings = [finding for report in reports for finding in report.findings]
        findings.append(memory_finding([report.start.memory for report in reports]))
        digests = digests_seen(findings)
        findings += unasked(digests, standard.digests)
        checks = checks_of(findings, standard.digests)
        return told.Count(slots, checks, digests, tuple(report.start for report in reports))

    def _start(self, mode: Mode, slots: int, start: int, deck: Deck, standard: Standard) -> StartReport:
        where = f"{mode}: {slots_text(slots)}, start {start} of {self._plan.starts}"
        self._begin(where)
        with fresh_start(self._subject, mode, slots) as site:
            trial = Trial(site, deck, standard.refused, self._plan.waves_at(slots), self._plan.tries)
            return trial.run(lambda check: self._say(f"{where}: {check}"))

    def _measured(self, mode: Mode, standard: Standard, counts: Sequence[told.Count]) -> told.Throughput | None:
        """The throughput of the counts that passed everything, whatever the number of starts was."""
        passed = [it.slots for it in counts if all(check.verdict is told.Verdict.PASSED for check in it.checks)]
        if not passed:
            return None
        self._begin(f"{mode}: throughput")
        return measure_throughput(
            self._subject,
            mode,
            standard.questions,
            passed,
            plan=self._plan,
            on_round=lambda number: self._say(f"{mode}: throughput, round {number} of {self._plan.throughput_rounds}"),
        )

    def _begin(self, what: str) -> None:
        self._started += 1
        self._say(what)

    def _say(self, what: str) -> None:
        self._on_progress(Progress(self._started - 1, self._plan.steps(), what))


def _model_facts(spec: ModelSpec, files: tuple[told.FileFact, ...]) -> told.ModelFacts:
    return told.ModelFacts(
        id=spec.id,
        family=spec.family,
        task=spec.task,
        device=spec.device,
        threads=spec.threads_setting,
        isolation=spec.isolation,
        load_options=dict(spec.load_options),
        session_options=dict(spec.session_options),
        files=files,
    )


def _plan_facts(plan: Plan) -> told.PlanFacts:
    return told.PlanFacts(
        starts=plan.starts,
        warm_waves=plan.warm_waves,
        warm_waves_at_most_slots=plan.warm_waves_at_most_slots,
        reference_starts=plan.reference_starts,
        reference_repeats=plan.reference_repeats,
    )
