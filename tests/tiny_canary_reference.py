"""What `tiny_canary.py`'s model hears, in plain loops over floats: slow, and sharing nothing with the product."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mel_reference import log_mel
from tiny_canary import CONFIG, TOKENS

Rows = Sequence[Sequence[float]]


class Heard(NamedTuple):
    """The text, and the mean of its tokens' log probabilities."""

    text: str
    avg_logprob: float


def hear(samples: Sequence[float], weights: Mapping[str, Rows], language: str, target_language: str, pnc: str) -> Heard:
    """Choose the likeliest token again and again, until the end or the longest answer."""
    context = _context(_normalised(log_mel(samples)), weights)
    prompt = ("\u2581", "<|startofcontext|>", "<|startoftranscript|>", "<|emo:undefined|>", f"<|{language}|>")
    prompt += (f"<|{target_language}|>", f"<|{pnc}|>", "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>")
    tokens = [TOKENS.index(token) for token in prompt]
    states: list[list[float]] = []
    logprobs: list[float] = []
    while len(tokens) < CONFIG["max_sequence_length"]:
        states += [_sum(weights["embeddings"][token], context) for token in tokens[len(states) :]]
        scores = _scores(states, weights)
        best = max(range(len(scores)), key=lambda token: scores[token])
        if TOKENS[best] == "<|endoftext|>":
            break
        logprobs.append(scores[best] - math.log(sum(math.exp(score) for score in scores)))
        tokens.append(best)
    said = [TOKENS[token] for token in tokens[len(prompt) :] if not TOKENS[token].startswith("<|")]
    return Heard("".join(said).replace("\u2581", " ").strip(), sum(logprobs) / len(logprobs) if logprobs else 0.0)


def _normalised(rows: Rows) -> list[list[float]]:
    """Each feature with mean 0 and deviation 1, as rows of features, and the row of zeros that onnx-asr adds."""
    columns = []
    for column in zip(*rows, strict=True):
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in column) / (len(column) - 1))
        columns.append([(value - mean) / (deviation + 1e-5) for value in column] + [0.0])
    return [list(row) for row in zip(*columns, strict=True)]


def _context(rows: Rows, weights: Mapping[str, Rows]) -> list[float]:
    """The mean of the encoder's embeddings of what was heard; those of the padding count as nothing."""
    heard = -(-(len(rows) - 1) // 8)
    groups = [rows[start : start + 8] for start in range(0, len(rows), 8)]
    total = [0.0] * len(weights["W"][0])
    for place, group in enumerate(groups[:heard]):
        pooled = [sum(column) / len(group) for column in zip(*group, strict=True)]
        for at in range(len(total)):
            projected = sum(value * weights["W"][row][at] for row, value in enumerate(pooled))
            total[at] += math.tanh(projected + weights["positions"][place][at])
    return [value / len(groups) for value in total]


def _sum(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [left + right for left, right in zip(one, other, strict=True)]


def _scores(states: Rows, weights: Mapping[str, Rows]) -> list[float]:
    past = [sum(column) / len(states) for column in zip(*states, strict=True)]
    bounded = [math.tanh(value) for value in _sum(states[-1], past)]
    return [sum(value * weights["Wo"][row][token] for row, value in enumerate(bounded)) for token in range(len(TOKENS))]
