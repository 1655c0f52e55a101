"""A streaming diarizer over `tiny_diarizer.py`'s graphs in plain loops: slow, and sharing nothing with the product.

It takes a whole recording's features and gives probabilities, or takes probabilities and gives turns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tiny_diarizer import DOUBT

Row = list[float]
Rows = list[Row]


@dataclass
class Memory:
    """The speaker cache and the queue of frames, with what the cache's frames were taken for."""

    cache: Rows = field(default_factory=list)
    cache_preds: Rows | None = None
    fifo: Rows = field(default_factory=list)
    silent: Rows = field(default_factory=list)
    """Every silent frame that ever left the queue."""


class Model(NamedTuple):
    """The weights and numbers of one diarizer; `learned` is its silence, None where that is a mean."""

    weights: Mapping[str, Rows]
    schedule: Mapping[str, int]
    sil_frames: int
    learned: Row | None
    fine: bool


def probabilities(model: Model, features: Rows, memory: Memory) -> Rows:
    """Those of every frame of 80 ms, or of 10 ms where the model is `fine`, for rows of mel features."""
    stride, told = 8 * model.schedule["chunk_len"], []
    for start in range(0, len(features), stride):
        heard = features[start : start + stride + 8 * model.schedule["right_context"]]
        told += _step(model, heard, memory)
    return told[: len(features)] if model.fine else told


def _step(model: Model, heard: Rows, memory: Memory) -> Rows:
    frames = []
    for start in range(0, len(heard), 8):
        flat = [value for row in heard[start : start + 8] for value in row]
        flat += [0.0] * (8 * 128 - len(flat))
        frames.append([math.tanh(value) for value in _times(flat, model.weights["Wp"])])
    everything = memory.cache + memory.fifo + frames
    around = [
        sum(row[at] * place / 100 for place, row in enumerate(everything)) / len(everything)
        for at in range(len(frames[0]))
    ]
    seen = [[own + mean for own, mean in zip(row, around, strict=True)] for row in everything]
    scores = [[score - DOUBT for score in _times(row, model.weights["Wh"])] for row in seen]
    preds = [[_sigmoid(score) for score in row] for row in scores]
    begin = len(memory.cache) + len(memory.fifo)
    keep = min(model.schedule["chunk_len"], math.ceil(len(heard) / 8))
    _remember(model, memory, preds, frames[:keep])
    if not model.fine:
        return preds[begin : begin + keep]
    return [
        [_sigmoid(score + step[0]) for score in row]
        for row in scores[begin : begin + keep]
        for step in model.weights["steps"]
    ]


def _remember(model: Model, memory: Memory, preds: Rows, new: Rows) -> None:
    schedule, cached, queued = model.schedule, len(memory.cache), len(memory.fifo)
    memory.fifo = memory.fifo + new
    if len(memory.fifo) <= schedule["fifo_len"]:
        return
    count = max(schedule["spkcache_update_period"], len(new) + queued - schedule["fifo_len"])
    count = min(count, len(memory.fifo))
    popped, popped_preds = memory.fifo[:count], preds[cached : cached + count]
    memory.fifo = memory.fifo[count:]
    memory.silent += [row for row, odds in zip(popped, popped_preds, strict=True) if sum(odds) < 0.2]
    memory.cache = memory.cache + popped
    if memory.cache_preds is not None:
        memory.cache_preds = memory.cache_preds + popped_preds
    if len(memory.cache) > schedule["spkcache_len"]:
        known = memory.cache_preds if memory.cache_preds is not None else preds[:cached] + popped_preds
        silence = model.learned
        if silence is None:
            silence = [sum(column) / len(memory.silent) for column in zip(*memory.silent, strict=True)] or [0.0] * len(
                popped[0]
            )
        memory.cache, memory.cache_preds = compress(
            memory.cache, known, silence, schedule["spkcache_len"], model.sil_frames
        )


def compress(rows: Rows, preds: Rows, silence: Row, cap: int, sil: int) -> tuple[Rows, Rows]:
    """Keep `cap` rows, by speaker and time; of equal scores the earlier speaker's, then the earlier frame's is best."""
    speakers = len(preds[0])
    share = cap // speakers - sil
    ranked: list[tuple[float, int, int]] = []
    for speaker in range(speakers):
        scores = []
        for odds in preds:
            score = math.log(max(odds[speaker], 0.25)) - math.log(max(1 - odds[speaker], 0.25)) - math.log(0.5)
            score += sum(math.log(max(1 - other, 0.25)) for other in odds)
            scores.append(score if odds[speaker] > 0.5 else -math.inf)
        enough = sum(score > 0 for score in scores) >= math.floor(0.5 * share)
        scores = [-math.inf if enough and score <= 0 else score for score in scores]
        scores = [score + (0.05 if place >= cap else 0.0) for place, score in enumerate(scores)]
        for rate, bonus in ((0.75, 2 * math.log(2)), (1.5, math.log(2))):
            best = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[: math.floor(rate * share)]
            scores = [score + (bonus if place in best else 0.0) for place, score in enumerate(scores)]
        scores += [math.inf] * sil
        ranked += [(-score, speaker, place) for place, score in enumerate(scores)]
    kept = sorted((speaker, place) for score, speaker, place in sorted(ranked)[:cap] if score < math.inf)
    places = [place for _, place in kept] + [len(rows)] * (cap - len(kept))
    return (
        [list(rows[place]) if place < len(rows) else list(silence) for place in places],
        [list(preds[place]) if place < len(rows) else [0.0] * speakers for place in places],
    )


class Rules(NamedTuple):
    """How probabilities become turns. Units: samples; `width` in frames of `frame` samples."""

    onset: float
    offset: float
    pad_onset: int
    pad_offset: int
    min_on: int
    min_off: int
    width: int
    frame: int


SORTFORMER_RULES = Rules(0.641, 0.561, 3664, 1264, 8176, 4736, 11, 1280)
NEMOTRON_RULES = Rules(0.5, 0.5, 0, 0, 0, 0, 1, 160)


def turns(probabilities: Rows, rules: Rules, end: int) -> list[tuple[int, int, int]]:
    """(start, end, speaker) of every turn of a recording of `end` samples, in this order."""
    found = []
    for speaker, column in enumerate(zip(*probabilities, strict=True)):
        runs = _runs(_medians(column, rules.width), rules)
        padded = [[max(0, start - rules.pad_onset), stop + rules.pad_offset] for start, stop in runs]
        long = [(start, stop) for start, stop in _joined(padded, 1) if stop - start >= rules.min_on]
        found += [(start, min(stop, end), speaker) for start, stop in _joined(long, rules.min_off) if start < end]
    return sorted(found, key=lambda turn: (turn[0], turn[2]))


def _medians(column: Sequence[float], width: int) -> Row:
    side = width // 2
    windows = [sorted(column[max(0, place - side) : place + side + 1]) for place in range(len(column))]
    return [window[len(window) // 2] for window in windows]


def _runs(column: Row, rules: Rules) -> list[tuple[int, int]]:
    runs, start = [], None
    for place, odds in enumerate(column):
        if start is None and odds > rules.onset:
            start = place
        elif start is not None and odds < rules.offset:
            runs.append((start * rules.frame, place * rules.frame))
            start = None
    return runs if start is None else [*runs, (start * rules.frame, len(column) * rules.frame)]


def _joined(spans: Sequence[Sequence[int]], gap: int) -> list[tuple[int, int]]:
    """Spans with less than `gap` between them made one."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _times(row: Sequence[float], matrix: Rows) -> Row:
    return [sum(value * line[at] for value, line in zip(row, matrix, strict=True)) for at in range(len(matrix[0]))]


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
