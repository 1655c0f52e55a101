"""How much audio one upload may become; it knows no container and reads nothing."""

from dataclasses import dataclass, replace
from typing import Self

from antiphon.vocabulary.audio import BYTES_PER_SAMPLE
from antiphon.vocabulary.errors import InvalidRequest, TooLarge

FIELD = "file"
"""The request field that every refusal of audio names."""


MIN_RATE_HZ = 1_000
MAX_RATE_HZ = 768_000
MAX_CHANNELS = 32


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """The bounds on decoded audio. Each is tested on a header's claim or a count, before anything is allocated for it.

    Units: `max_seconds` of sound, rates in Hz, `max_bytes` of decoded float32. A rate is both a claim about time and a
    factor: at 1 Hz, 64 kB would be nine hours, and 2 GB once resampled to 16 kHz. No speech lies below 1 kHz and no
    converter runs above 768 kHz. 32 channels cover every speaker layout and microphone array in use. `max_bytes` holds
    four hours of stereo at 48 kHz.
    """

    max_seconds: float
    min_rate: int = MIN_RATE_HZ
    max_rate: int = MAX_RATE_HZ
    max_channels: int = MAX_CHANNELS
    max_bytes: int = 6 * 1024**3

    def within(self, budget_bytes: int) -> Self:
        """The same for uploads that share a budget, 0 for none: one that alone is more than all of it never fits."""
        return replace(self, max_bytes=min(self.max_bytes, budget_bytes)) if budget_bytes else self

    def check_format(self, rate: int, channels: int) -> None:
        """Refuse a rate or a number of channels that no speech recording has; raises InvalidRequest."""
        if not self.min_rate <= rate <= self.max_rate:
            message = f"the sample rate is {rate} Hz; it must be {self.min_rate} to {self.max_rate} Hz"
            raise InvalidRequest(message, param=FIELD)
        if not 1 <= channels <= self.max_channels:
            message = f"the audio has {channels} channels; it must have 1 to {self.max_channels}"
            raise InvalidRequest(message, param=FIELD)

    def check_declared(self, seconds: float, rate: int, channels: int) -> None:
        """Refuse a file that declares so much audio, before any of it is decoded; raises TooLarge.

        `rate` and `channels` are those of the header, which may know less than the first frame: 0 is "not known".
        """
        if seconds > self.max_seconds:
            limit = f"the limit of {self.max_seconds:g} seconds (max_audio_seconds)"
            raise TooLarge(f"the audio declares {seconds:.0f} seconds, which is longer than {limit}", param=FIELD)
        self.check_length(int(seconds * rate), rate, channels)

    def check_length(self, frames: int, rate: int, channels: int) -> None:
        """Refuse audio that is too long, or too large once decoded; raises TooLarge."""
        if frames > self.max_seconds * rate:
            told = f"the audio is longer than the limit of {self.max_seconds:g} seconds (max_audio_seconds)"
            raise TooLarge(told, param=FIELD)
        if frames * channels * BYTES_PER_SAMPLE > self.max_bytes:
            told = f"the decoded audio is larger than the limit of {self.max_bytes} bytes (max_pending_audio_mb)"
            raise TooLarge(told, param=FIELD)
