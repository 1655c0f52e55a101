"""A case: sides that take turns, and the questions that their turns answer. It knows no server and no engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from antiphon.bench.samples import Basis, Sample, Spread, paired_ratios


class Side(Protocol):
    """Something whose cost is measured, turn by turn."""

    @property
    def name(self) -> str: ...
    def measure(self) -> Sample:
        """Take one turn."""
        ...


class Sense(Enum):
    """What a ratio is of: work a second (more is better), or seconds a piece of work (less is better)."""

    RATE = auto()
    COST = auto()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question: how `ours` stands to the best of `references`, all of them names of sides.

    `target` is the ratio that we mean to reach: at least that of a rate, at most that of a cost. It refers to `basis`.
    """

    title: str
    ours: str
    references: tuple[str, ...]
    sense: Sense
    basis: Basis
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Sides and questions about them. Sides that are compared take their turns in the same round."""

    name: str
    sides: tuple[Side, ...]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A question with its answer: the ratio by either clock, and the reference that it is to."""

    comparison: Comparison
    reference: str
    wall: Spread
    cpu: Spread

    @property
    def ratio(self) -> Spread:
        """The ratio that the target speaks of."""
        return self.wall if self.comparison.basis is Basis.WALL else self.cpu

    @property
    def is_met(self) -> bool | None:
        """Whether the median reaches the target; None where there is none."""
        target = self.comparison.target
        if target is None:
            return None
        return self.ratio.median >= target if self.comparison.sense is Sense.RATE else self.ratio.median <= target


def take_turns(case: Case, rounds: int, on_round: Callable[[int], None]) -> dict[str, list[Sample]]:
    """Measure every side once a round: A B C, then C B A, so that a drift within a round falls on each side alike.

    `on_round` is told each round's number, from 1, before it begins.
    """
    samples: dict[str, list[Sample]] = {side.name: [] for side in case.sides}
    for number in range(1, rounds + 1):
        on_round(number)
        for side in case.sides if number % 2 else reversed(case.sides):
            samples[side.name].append(side.measure())
    return samples


def answer(comparison: Comparison, samples: Mapping[str, Sequence[Sample]]) -> Finding:
    """Answer one question. Of several references it takes the one with the least median cost."""
    ours = samples[comparison.ours]
    reference = min(
        comparison.references,
        key=lambda name: Spread.of([it.per_request_s(comparison.basis) for it in samples[name]]).median,
    )

    def ratio(basis: Basis) -> Spread:
        theirs = samples[reference]
        pair = (theirs, ours) if comparison.sense is Sense.RATE else (ours, theirs)
        return Spread.of(paired_ratios(*pair, basis))

    return Finding(comparison, reference, ratio(Basis.WALL), ratio(Basis.CPU))
