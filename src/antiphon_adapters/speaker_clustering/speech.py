"""The stretches of a recording in which somebody speaks, and the pauses in them; who it is, is not known here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from antiphon_adapters.silero.endpointing import Pauses

LISTENING = Pauses(shortest_speech=0, silence=1_600, threshold=0.3)
"""Every pause of 100 ms is told. Units: samples at 16 kHz, here and below."""

LONG_PAUSE = 4_800
"""Such a pause, 300 ms, ends a stretch."""

SHORTEST = 3_200
"""Up to 200 ms are no speech."""

PADDING = 1_600
"""What the detector misses of the beginning of speech: its threshold is crossed late. So it is at the end, past it."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Speech without a long pause, `pauses` being the short ones in it, in order."""

    start: int
    end: int
    pauses: tuple[Span, ...] = ()


def stretches_of(spans: Iterable[Span], length: int) -> Iterator[Stretch]:
    """Group the detected speech of a recording of `length` samples; what begins is padded, and nothing overlaps."""
    floor = 0
    for stretch, following in _with_next(_grouped(spans)):
        ceiling = length if following is None else (stretch.end + following.start) // 2
        start, end = max(floor, stretch.start - PADDING), min(ceiling, stretch.end)
        yield Stretch(start, end, tuple(_narrowed(pause) for pause in stretch.pauses))
        floor = ceiling


def _grouped(spans: Iterable[Span]) -> Iterator[Stretch]:
    group: list[Span] = []
    for span in spans:
        if group and span[0] - group[-1][1] >= LONG_PAUSE:
            yield from _stretch(group)
            group = []
        group.append(span)
    yield from _stretch(group)


def _stretch(group: list[Span]) -> Iterator[Stretch]:
    if group and group[-1][1] - group[0][0] > SHORTEST:
        pauses = tuple((one[1], other[0]) for one, other in pairwise(group))
        yield Stretch(group[0][0], group[-1][1], pauses)


def _narrowed(pause: Span) -> Span:
    """A pause without the padding of the speech after it; at least its first half."""
    return pause[0], max(pause[1] - PADDING, sum(pause) // 2)


def _with_next(stretches: Iterable[Stretch]) -> Iterator[tuple[Stretch, Stretch | None]]:
    last: Stretch | None = None
    for stretch in stretches:
        if last is not None:
            yield last, stretch
        last = stretch
    if last is not None:
        yield last, None
