"""What one look at an installation found, as values; it looks at nothing itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How something is: in order, serving but not well, or not serving; from good to bad."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How one subject is. `advice` says what to do, and is empty where all is in order."""

    subject: str
    health: Health
    said: str
    advice: str = ""


def ok(subject: str, said: str) -> Diagnosis:
    """It is in order."""
    return Diagnosis(subject, Health.OK, said)


def warn(subject: str, said: str, advice: str) -> Diagnosis:
    """It serves, and not well."""
    return Diagnosis(subject, Health.WARN, said, advice)


def fail(subject: str, said: str, advice: str) -> Diagnosis:
    """It does not serve."""
    return Diagnosis(subject, Health.FAIL, said, advice)


def worst(diagnoses: Iterable[Diagnosis]) -> Health:
    """How all of it is."""
    return max((it.health for it in diagnoses), key=list(Health).index, default=Health.OK)
