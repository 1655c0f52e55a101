"""What was measured, and what its numbers say together; it measures nothing itself."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Basis(StrEnum):
    """Which clock a number is read from: the wall's, or the processor time of the process that was measured."""

    WALL = "wall"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn of one side. Units: `wall_s` and `cpu_s` seconds for all `requests` together."""

    requests: int
    wall_s: float
    cpu_s: float

    def per_request_s(self, basis: Basis) -> float:
        """Seconds a request."""
        return (self.wall_s if basis is Basis.WALL else self.cpu_s) / self.requests


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some numbers and their extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Self:
        """Sum up; raises ValueError where there are none."""
        if not numbers:
            raise ValueError("there are no numbers to sum up")
        return cls(statistics.median(numbers), min(numbers), max(numbers))


def paired_ratios(dividends: Sequence[Sample], divisors: Sequence[Sample], basis: Basis) -> list[float]:
    """Divide the seconds a request of one side by those of the other, round by round.

    The two turns of a round are close in time, so a machine that slows down for a while changes both.
    """
    return [
        dividend.per_request_s(basis) / divisor.per_request_s(basis)
        for dividend, divisor in zip(dividends, divisors, strict=True)
    ]
