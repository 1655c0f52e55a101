"""faster-whisper's model with one fault mended. Importing this module imports the engine: only `load` may."""

from faster_whisper import WhisperModel


class WhisperEngine(WhisperModel):  # type: ignore[misc]  # faster-whisper ships no types
    """A `WhisperModel` whose word times can be asked for whatever is left at a recording's end."""

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
