"""An examination as people and programs read it; it prints nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from antiphon.doctor.diagnosis import Diagnosis, Health, worst
from antiphon.vocabulary.printable import printable

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "bold red"}
_INDENT = " " * 6


def lines(diagnosis: Diagnosis) -> "Iterator[Text]":
    """One line, and a second one with the advice where there is one."""
    from rich.text import Text

    yield Text.assemble(
        (f"{diagnosis.health:<5}", _STYLES[diagnosis.health]), printable(f" {diagnosis.subject}: {diagnosis.said}")
    )
    if diagnosis.advice:
        yield Text(f"{_INDENT}{printable(diagnosis.advice)}", style="italic")


def closing_line(diagnoses: Sequence[Diagnosis]) -> str:
    """How many of each there are."""
    counts = {health: sum(it.health is health for it in diagnoses) for health in Health}
    return ", ".join(f"{count} {health}" for health, count in counts.items())


def as_json(diagnoses: Sequence[Diagnosis]) -> Mapping[str, object]:
    """All of it: {"health", "diagnoses": [{"subject", "health", "said", "advice"}]}."""
    return {"health": worst(diagnoses), "diagnoses": [asdict(it) for it in diagnoses]}
