"""How many requests a second each number of slots answers, and which number to use. It compares no answers."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from antiphon.bench.load import drive, json_request
from antiphon.bench.samples import Spread
from antiphon.validation.evidence import Rate, Throughput
from antiphon.validation.plan import Plan
from antiphon.validation.questions import Question, Way
from antiphon.validation.site import Entry, Subject, fresh_start
from antiphon.vocabulary.tasks import Mode

WORTHWHILE = 1.05
"""More slots take more memory: they are recommended only where they answer this much more."""


def measure_throughput(
    subject: Subject,
    mode: Mode,
    questions: Sequence[Question],
    counts: Sequence[int],
    *,
    plan: Plan,
    on_round: Callable[[int], None],
) -> Throughput:
    """Measure servers of these counts in turn, each with as many clients as slots; every second round is backwards."""
    asked = [it for it in questions if it.way is Way.RUN] or list(questions)
    bodies = [json_request(it.way.path, it.body(Entry.MODEL)) for it in asked]
    work = [bodies[place % len(bodies)] for place in range(plan.throughput_requests)]
    rates: dict[int, list[float]] = {slots: [] for slots in counts}
    with ExitStack() as opened:
        sites = [opened.enter_context(fresh_start(subject, mode, slots)) for slots in counts]
        for site in sites:
            drive(site.url, bodies[:1] * site.slots, site.slots)
        for number in range(1, plan.throughput_rounds + 1):
            on_round(number)
            for site in sites if number % 2 else reversed(sites):
                rates[site.slots].append(len(work) / drive(site.url, work, site.slots))
    spreads = {slots: Spread.of(measured) for slots, measured in rates.items()}
    return Throughput(
        tuple(Rate(slots, round(it.median, 3), round(it.low, 3), round(it.high, 3)) for slots, it in spreads.items()),
        recommended({slots: it.median for slots, it in spreads.items()}),
    )


def recommended(rates: dict[int, float]) -> int:
    """The fewest slots than which no larger number answers `WORTHWHILE` times as much."""
    best = max(rates.values())
    return min(slots for slots, rate in rates.items() if rate * WORTHWHILE >= best)


def is_clear(throughput: Throughput) -> bool:
    """Whether the rounds of each number are nearer to each other than twice what the choice is decided by."""
    return all(rate.high - rate.low <= 2 * (WORTHWHILE - 1) * rate.median for rate in throughput.rates)
