"""Which frames of an overfull speaker cache are kept: those that tell each speaker best. It knows no graph, no audio.

Source: NeMo's SortformerModules._compress_spkcache, its constants those of the released models.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOOR = 0.25
"""Probabilities below it count as it."""

SPEECH = 0.5
NEW_BONUS = 0.05
POSITIVE_RATE, STRONG_RATE, WEAK_RATE = 0.5, 0.75, 1.5
LN_2 = float(np.log(2.0))


def compress(
    embeddings: "NDArray[np.float32]",
    predictions: "NDArray[np.float32]",
    silence: "NDArray[np.float32]",
    size: int,
    sil_frames: int,
) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
    """Keep `size` rows of more than so many.

    Shapes: `embeddings` [n, d], `predictions` [n, speakers], `silence` [d]. The rows come back by speaker, for each in
    order of time and then `sil_frames` rows of silence; a frame that is good for two speakers is there twice. Rows that
    nobody has a use for stand at the end and are silence, too. Silent rows have predictions of 0.
    """
    count, speakers = predictions.shape
    share = size // speakers - sil_frames
    scores = _scores(predictions, int(POSITIVE_RATE * share))
    scores[size:] += NEW_BONUS
    _favour(scores, int(STRONG_RATE * share), 2 * LN_2)
    _favour(scores, int(WEAK_RATE * share), LN_2)

    always = np.full((sil_frames, speakers), np.inf)
    # Speaker by speaker: the cache keeps the speakers in the order of their arrival.
    ranked = np.concatenate((scores, always)).T.reshape(-1)
    kept = np.argsort(-ranked, kind="stable")[:size]
    kept = np.sort(kept[ranked[kept] > -np.inf])
    frames = np.full(size, count)
    frames[: len(kept)] = np.minimum(kept % (count + sil_frames), count)

    with_silence = np.concatenate((embeddings, silence[None]))
    with_nobody = np.concatenate((predictions, np.zeros((1, speakers), np.float32)))
    return with_silence[frames], with_nobody[frames]


def _scores(predictions: "NDArray[np.float32]", enough: int) -> "NDArray[np.float64]":
    """How well each frame tells each speaker, shape [n, speakers]: alone and sure is best, -inf is out."""
    speech = predictions.astype(np.float64)
    silence = np.log(np.maximum(1.0 - speech, FLOOR))
    scores: NDArray[np.float64] = np.log(np.maximum(speech, FLOOR)) - silence
    scores += silence.sum(axis=1, keepdims=True) + LN_2
    scores[speech <= SPEECH] = -np.inf
    # Frames in which others speak, too, are for speakers who have little else.
    has_enough = (scores > 0).sum(axis=0) >= enough
    scores[(scores <= 0) & has_enough] = -np.inf
    return scores


def _favour(scores: "NDArray[np.float64]", count: int, bonus: float) -> None:
    """Raise each speaker's best `count` frames, in place, so that no speaker fills the cache alone."""
    best = np.argsort(-scores, axis=0, kind="stable")[:count]
    np.put_along_axis(scores, best, np.take_along_axis(scores, best, axis=0) + bonus, axis=0)
