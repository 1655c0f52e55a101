"""How far speaker turns are from the true ones: NIST's diarization error, without a collar, on frames of 10 ms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from antiphon.vocabulary.tasks import SpeakerTurn

FRAME_SAMPLES = 160


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of the true speech: missed, heard where there is none, given to another speaker; `speakers` were told."""

    missed: float
    false_alarm: float
    confusion: float
    speakers: int

    @property
    def error(self) -> float:
        return self.missed + self.false_alarm + self.confusion


def score(truth: Sequence[SpeakerTurn], told: Sequence[SpeakerTurn]) -> Score:
    """Compare under the mapping of names that is best for the told turns."""
    frames = max(turn.end_sample for turn in (*truth, *told)) // FRAME_SAMPLES + 1
    true, found = _activity(truth, frames), _activity(told, frames)
    agreed = true.T @ found
    rows, columns = linear_sum_assignment(-agreed)
    said, heard = true.sum(axis=1), found.sum(axis=1)
    speech = said.sum()
    return Score(
        missed=float(np.maximum(said - heard, 0).sum() / speech),
        false_alarm=float(np.maximum(heard - said, 0).sum() / speech),
        confusion=float((np.minimum(said, heard).sum() - agreed[rows, columns].sum()) / speech),
        speakers=found.shape[1],
    )


def _activity(turns: Sequence[SpeakerTurn], frames: int) -> NDArray[np.float64]:
    """Who speaks in each frame, shape [frames, speakers]."""
    names = sorted({turn.speaker_id for turn in turns})
    active = np.zeros((frames, len(names)))
    for turn in turns:
        active[turn.start_sample // FRAME_SAMPLES : turn.end_sample // FRAME_SAMPLES, names.index(turn.speaker_id)] = 1
    return active
