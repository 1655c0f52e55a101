"""What the numbers of a run say together."""

import pytest

from antiphon.bench.comparisons import Case, Comparison, Finding, Sense, answer, take_turns
from antiphon.bench.samples import Basis, Sample, Spread, paired_ratios


def sample(cpu_s: float, wall_s: float = 1.0, requests: int = 1) -> Sample:
    return Sample(requests, wall_s, cpu_s)


class Counting:
    """A side that says when its turns came."""

    def __init__(self, name: str, turns: list[str]) -> None:
        self.name = name
        self._turns = turns

    def measure(self) -> Sample:
        self._turns.append(self.name)
        return sample(1.0)


def question(sense: Sense, target: float | None = None, *references: str) -> Comparison:
    return Comparison("ours / theirs", "ours", references or ("theirs",), sense, Basis.CPU, target)


def test_a_sample_counts_seconds_a_request() -> None:
    measured = Sample(requests=4, wall_s=2.0, cpu_s=1.0)
    assert (measured.per_request_s(Basis.WALL), measured.per_request_s(Basis.CPU)) == (0.5, 0.25)


def test_a_spread_is_the_median_and_the_extremes() -> None:
    assert Spread.of([5.0, 1.0, 2.0]) == Spread(median=2.0, low=1.0, high=5.0)


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert Spread.of([4.0, 1.0, 2.0, 9.0]).median == 3.0


def test_nothing_has_no_spread() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        Spread.of([])


def test_ratios_are_taken_round_by_round() -> None:
    assert paired_ratios([sample(1.0), sample(8.0)], [sample(2.0), sample(4.0)], Basis.CPU) == [0.5, 2.0]


def test_ratios_weigh_by_request_and_not_by_turn() -> None:
    assert paired_ratios([sample(1.0, requests=10)], [sample(1.0, requests=5)], Basis.CPU) == [0.5]


def test_sides_with_unequal_numbers_of_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        paired_ratios([sample(1.0)], [sample(1.0), sample(1.0)], Basis.CPU)


def test_a_rate_is_better_when_ours_costs_less() -> None:
    found = answer(question(Sense.RATE), {"ours": [sample(1.0)], "theirs": [sample(2.0)]})
    assert found.cpu.median == 2.0


def test_a_cost_is_better_when_ours_costs_less() -> None:
    found = answer(question(Sense.COST), {"ours": [sample(1.0)], "theirs": [sample(2.0)]})
    assert found.cpu.median == 0.5


def test_a_finding_has_the_ratio_by_either_clock() -> None:
    found = answer(question(Sense.RATE), {"ours": [sample(1.0, wall_s=1.0)], "theirs": [sample(2.0, wall_s=4.0)]})
    assert (found.wall.median, found.cpu.median, found.ratio.median) == (4.0, 2.0, 2.0)


def test_the_best_of_several_references_is_taken_by_its_median() -> None:
    samples = {"ours": [sample(1.0)] * 3, "slow": [sample(3.0)] * 3, "best": [sample(2.0), sample(2.0), sample(9.0)]}
    assert answer(question(Sense.RATE, None, "slow", "best"), samples).reference == "best"


@pytest.mark.parametrize(
    ("sense", "ratio", "met"),
    [(Sense.RATE, 0.7, True), (Sense.RATE, 0.69, False), (Sense.COST, 0.7, True), (Sense.COST, 0.71, False)],
)
def test_a_target_is_a_floor_for_a_rate_and_a_ceiling_for_a_cost(sense: Sense, ratio: float, met: bool) -> None:
    spread = Spread(ratio, ratio, ratio)
    assert Finding(question(sense, 0.7), "theirs", wall=Spread(0, 0, 0), cpu=spread).is_met is met


def test_a_question_without_a_target_is_neither_met_nor_missed() -> None:
    assert answer(question(Sense.RATE), {"ours": [sample(1.0)], "theirs": [sample(1.0)]}).is_met is None


def test_sides_take_turns_and_every_second_round_runs_backwards() -> None:
    turns: list[str] = []
    rounds: list[int] = []
    case = Case("case", (Counting("a", turns), Counting("b", turns)), ())
    samples = take_turns(case, 3, rounds.append)
    assert turns == ["a", "b", "b", "a", "a", "b"]
    assert rounds == [1, 2, 3]
    assert {name: len(its) for name, its in samples.items()} == {"a": 3, "b": 3}
