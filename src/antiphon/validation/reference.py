"""The one-slot reference: every question asked alone, again and again, in fresh servers, before anything else.

It settles which ways of asking the model has, which bad requests it refuses, and what its answers are.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.validation.client import Answer, ask
from antiphon.validation.errors import NoAnswer, ValidationError
from antiphon.validation.inputs import Inputs
from antiphon.validation.plan import Plan
from antiphon.validation.questions import Input, Question, Way, digest_of, questions_of
from antiphon.validation.site import Entry, Site, Subject, fresh_start
from antiphon.vocabulary.tasks import Mode


@dataclass(frozen=True, slots=True)
class Standard:
    """What answers are held against: `digests` has more than one for a question whose answers varied."""

    questions: tuple[Question, ...]
    refused: tuple[Question, ...]
    digests: dict[str, tuple[str, ...]]


def measure_reference(
    subject: Subject, mode: Mode, inputs: Inputs, plan: Plan, on_start: Callable[[int], None]
) -> Standard:
    """Ask one slot; raises ValidationError where it fails at a question: then there is nothing to compare with."""
    digests: dict[str, set[str]] = defaultdict(set)
    questions: list[Question] = []
    refused: list[Question] = []
    for start in range(1, plan.reference_starts + 1):
        on_start(start)
        with fresh_start(subject, mode, 1) as site:
            if start == 1:
                ways = _ways(site, inputs.good)
                refused = [it for it in questions_of((*inputs.good, *inputs.bad), ways[:1]) if _is_refused(site, it)]
                questions = questions_of(_answered(inputs, refused), ways)
            for repeat in range(plan.reference_repeats):
                for question in questions if (start + repeat) % 2 else reversed(questions):
                    digests[question.name].add(_digest(site, question))
    return Standard(tuple(questions), tuple(refused), {name: tuple(sorted(seen)) for name, seen in digests.items()})


def is_refusal(answer: Answer) -> bool:
    """Whether an answer refuses a bad request, in the shape of all errors."""
    if answer.status != 400:
        return False
    error = answer.json().get("error")
    return isinstance(error, dict) and error.get("type") == "invalid_request_error"


def _answered(inputs: Inputs, refused: Sequence[Question]) -> list[Input]:
    """The good inputs without those that this model refuses, which are bad ones to it: a voice need not sing."""
    answered = [it for it in inputs.good if all(it not in question.inputs for question in refused)]
    if len(answered) < 2:
        raise ValidationError(f"one slot alone answers {len(answered)} of the inputs; at least two are needed")
    return answered


def _ways(site: Site, inputs: Sequence[Input]) -> list[Way]:
    """The ways that the model can be called in; a way that it lacks is a 400 that blames the model."""
    ways = []
    for way in Way:
        answer = _ask(site, questions_of(inputs, [way])[0])
        error = answer.json().get("error") if answer.status == 400 else None
        if not (isinstance(error, dict) and error.get("param") == "model"):
            ways.append(way)
    if not ways:
        raise ValidationError("the model can be called in no way")
    return ways


def _is_refused(site: Site, question: Question) -> bool:
    return is_refusal(_ask(site, question))


def _digest(site: Site, question: Question) -> str:
    digest, fault = digest_of(question.way, _ask(site, question))
    if digest is None:
        raise ValidationError(f"one slot alone fails at {question.name}: {fault}")
    return digest


def _ask(site: Site, question: Question) -> Answer:
    try:
        return ask(site.url, question.way.path, question.body(Entry.MODEL))
    except NoAnswer as fault:
        raise ValidationError(f"one slot alone fails at {question.name}: {fault.message}") from fault
