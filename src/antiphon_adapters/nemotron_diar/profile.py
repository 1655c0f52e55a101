"""What tells one diarizer from another: its schedule, its silence, its rules for turns. It computes nothing."""

from dataclasses import dataclass
from typing import Literal

SAMPLE_RATE = 16000
MEL_FRAMES = 8
"""Mel frames, 10 ms each, to one frame of the encoder, which is 80 ms."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How much the model hears at a time and remembers. Units: frames of 80 ms.

    `sil_frames` are the rows of silence that the cache keeps after the frames of each speaker.
    """

    chunk_len: int
    right_context: int
    fifo_len: int
    spkcache_len: int
    spkcache_update_period: int
    sil_frames: int


@dataclass(frozen=True, slots=True)
class TurnRules:
    """How probabilities become turns. Units: seconds, and frames of the model's output for `median`.

    A run begins above `onset` and ends below `offset`. Source: NeMo's post-processing of Sortformer, its parameters for
    two-party telephone speech (diar_streaming_sortformer_4spk-v2_callhome-part1.yaml).
    """

    onset: float
    offset: float
    pad_onset_s: float = 0.0
    pad_offset_s: float = 0.0
    min_on_s: float = 0.0
    min_off_s: float = 0.0
    median: int = 1


@dataclass(frozen=True, slots=True)
class Outputs:
    """The names of a graph's outputs: the predictions that drive the cache, at 80 ms, and those that are told.

    Units: `told_frames` of those to one frame of 80 ms.
    """

    preds: str
    told: str
    told_frames: Literal[1, 8]


@dataclass(frozen=True, slots=True)
class Generation:
    """One kind of model. `schedule` holds what a model's metadata leaves out, `speakers` what its shapes do."""

    outputs: tuple[Outputs, ...]
    speakers: int
    schedule: Schedule
    rules: TurnRules
    learns_silence: bool


SORTFORMER = Generation(
    outputs=(Outputs("spkcache_fifo_chunk_preds", "spkcache_fifo_chunk_preds", 1),),
    speakers=4,
    schedule=Schedule(124, 1, 124, 188, 124, sil_frames=3),
    rules=TurnRules(0.641, 0.561, 0.229, 0.079, 0.511, 0.296, 11),
    learns_silence=False,
)
NEMOTRON_3 = Generation(
    outputs=(
        Outputs("spkcache_fifo_chunk_preds", "spkcache_fifo_chunk_preds_hr", 8),
        Outputs("preds_diar", "preds_hires", 8),
    ),
    speakers=8,
    schedule=Schedule(340, 40, 40, 264, 300, sil_frames=1),
    rules=TurnRules(0.5, 0.5),
    learns_silence=True,
)
GENERATIONS = (NEMOTRON_3, SORTFORMER)
"""The first whose outputs a graph has is its generation: Sortformer's are among those of Nemotron-3."""
