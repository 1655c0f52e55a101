"""How much a validation does; the defaults are what a listing needs."""

from dataclasses import dataclass

from antiphon.vocabulary.tasks import Mode


@dataclass(frozen=True, slots=True)
class Plan:
    """Each of `counts`, numbers of slots in their order, in each of `modes`.

    `starts` fresh servers a count; `warm_waves` mixed waves a start, `warm_waves_at_most_slots` at the last count.
    `reference_starts` servers of one slot, each asked everything `reference_repeats` times. `tries` is how often a wave
    is sent anew that was answered before all of it was out. `throughput_rounds` 0 measures no throughput.
    """

    counts: tuple[int, ...]
    modes: tuple[Mode, ...]
    starts: int = 3
    warm_waves: int = 5
    warm_waves_at_most_slots: int = 10
    reference_starts: int = 2
    reference_repeats: int = 2
    tries: int = 5
    throughput_rounds: int = 0
    throughput_requests: int = 16

    def waves_at(self, slots: int) -> int:
        """The mixed warm waves of a start with so many slots."""
        return self.warm_waves_at_most_slots if slots == self.counts[-1] else self.warm_waves

    def steps(self) -> int:
        """How many starts there are in all, and the measuring of the throughput as one more."""
        starts = len(self.modes) * (self.reference_starts + len(self.counts) * self.starts)
        return starts + bool(self.throughput_rounds)


def slots_text(slots: int) -> str:
    """A number of slots as people say it."""
    return f"{slots} slot" if slots == 1 else f"{slots} slots"
