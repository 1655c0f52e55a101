"""A model of this family on disk: which files it is, before and after its conversion. It reads no weights."""

from dataclasses import dataclass
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.silero.model_files import read_network

CHECKPOINT_NAME = "pretrained.pt"
"""Resemblyzer's encoder as it is published."""

ENCODER_NAME = "speaker_encoder.onnx"
"""The same as it is loaded."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The two networks of one model."""

    encoder: Path
    detector: Path

    @property
    def weight_bytes(self) -> int:
        """What both take on disk."""
        return self.encoder.stat().st_size + self.detector.stat().st_size


def read_model(path: str) -> ModelFiles:
    """Find the model in the folder `path`; raises ConfigError naming the file that is not there."""
    detector = read_network(path)
    encoder = Path(path) / ENCODER_NAME
    if not encoder.is_file():
        raise ConfigError(f"the model has no {ENCODER_NAME}: an install makes it of {CHECKPOINT_NAME}")
    return ModelFiles(encoder, detector)
