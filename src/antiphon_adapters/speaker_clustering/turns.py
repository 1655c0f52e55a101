"""From windows and their clusters to speaker turns: pure arithmetic on places, without sound and without numpy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from antiphon.vocabulary.tasks import SpeakerTurn
from antiphon_adapters.speaker_clustering.prints import Window
from antiphon_adapters.speaker_clustering.speech import SHORTEST, Span, Stretch

REACH_SAMPLES = 12_800
"""Half a window: windows tell where the voice changes no better than that."""

SHORT_GAP_SAMPLES = 16_000
"""A speaker who goes on within a second has not stopped. Units: samples at 16 kHz."""


@dataclass(frozen=True, slots=True)
class Voiced:
    """A stretch of one cluster's speech. Units: samples."""

    start: int
    end: int
    cluster: int


def voiced_parts(stretch: Stretch, windows: Sequence[Window], clusters: Sequence[int]) -> Iterator[Voiced]:
    """Cut a stretch of speech where the cluster of the nearest window's middle changes, in a pause if one is near."""
    start = stretch.start
    for (window, cluster), (following, its_cluster) in pairwise(zip(windows, clusters, strict=True)):
        if cluster != its_cluster:
            end, next_start = _cut(round((window.middle + following.middle) / 2), start, stretch)
            if end > start:
                yield Voiced(start, end, cluster)
            start = next_start
    yield Voiced(start, stretch.end, clusters[-1])


def _cut(place: int, start: int, stretch: Stretch) -> Span:
    """Where one speaker ends and the next begins, about at `place`: around the longest pause near it, or just there."""
    near = [pause for pause in stretch.pauses if pause[0] >= start and abs(sum(pause) // 2 - place) <= REACH_SAMPLES]
    if near:
        return max(near, key=lambda pause: pause[1] - pause[0])
    cut = min(max(place, start), stretch.end)
    return cut, cut


def speaker_turns(parts: Iterable[Voiced]) -> tuple[SpeakerTurn, ...]:
    """Join what one speaker says with short pauses; speakers are numbered in the order in which they first speak.

    What is too short for speech is nobody's: where two voices meet, the windows that hear both may be like a third.
    """
    joined: list[Voiced] = []
    for part in parts:
        if part.end - part.start <= SHORTEST:
            continue
        last = joined[-1] if joined else None
        if last is not None and last.cluster == part.cluster and part.start - last.end < SHORT_GAP_SAMPLES:
            joined[-1] = replace(last, end=part.end)
        else:
            joined.append(part)
    names: dict[int, str] = {}
    for part in joined:
        names.setdefault(part.cluster, f"SPEAKER_{len(names):02}")
    return tuple(SpeakerTurn(part.start, part.end, names[part.cluster]) for part in joined)
