"""faster-whisper's model with one fault mended and a hurried twin.

Only `load` may import this: it imports the engine.
"""

import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from faster_whisper import WhisperModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

HURRIED_MARGIN = 400
"""How much silence a hurried model hears behind the sound. Units: feature frames of 10 ms.

With 1 s it goes round in circles ("f- f- f-"); with 4 s it heard what the whole window of 30 s lets it hear.
"""


class WhisperEngine(WhisperModel):  # type: ignore[misc]  # faster-whisper ships no types
    """A `WhisperModel` whose word times can be asked for whatever is left at a recording's end."""

    _hurried = False

    def hurried(self) -> Self:
        """The same weights, listening to the sound alone and not to 30 s of it and silence: for guesses.

        A pass over 5 s takes a quarter of the time. The model was not trained so: do not use it for a last word.
        """
        twin = copy.copy(self)
        twin._hurried = True  # noqa: SLF001 (the twin is this object's own)
        return twin

    def encode(self, features: "NDArray[np.float32]") -> object:
        """Encode one window of features, shape (mels, frames); the padding of the last one is zeros."""
        if self._hurried:
            sound = np.flatnonzero(features.any(axis=0))
            features = features[:, : int(sound[-1]) + 1 + HURRIED_MARGIN if len(sound) else HURRIED_MARGIN]
        return super().encode(features)

    def find_alignment(
        self,
        tokenizer: object,
        text_tokens: list[list[int]],
        encoder_output: object,
        num_frames: int,
        median_filter_width: int = 7,
    ) -> list[dict[str, object]]:
        """Align tokens to feature frames of 10 ms.

        CTranslate2 halves `num_frames`; of one frame nothing is left, and faster-whisper 1.2.1 then raises IndexError.
        """
        aligned: list[dict[str, object]] = super().find_alignment(
            tokenizer, text_tokens, encoder_output, max(num_frames, 2), median_filter_width
        )
        return aligned
