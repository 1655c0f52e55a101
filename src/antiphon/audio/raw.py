"""Raw PCM as it arrives, cut anywhere, into samples; it knows no container and no end."""

from dataclasses import dataclass
from enum import StrEnum

from antiphon.audio.samples import ALAW_TABLE, MULAW_TABLE, companded, floating, presentable, signed
from antiphon.vocabulary.audio import Pcm


class SampleFormat(StrEnum):
    """How raw samples are written: little-endian 16-bit integers or 32-bit floats, or one byte each as G.711 has it."""

    S16LE = "s16le"
    F32LE = "f32le"
    MULAW = "mulaw"
    ALAW = "alaw"


_READERS = {
    SampleFormat.S16LE: (2, signed(2)),
    SampleFormat.F32LE: (4, floating(4)),
    SampleFormat.MULAW: (1, companded(MULAW_TABLE)),
    SampleFormat.ALAW: (1, companded(ALAW_TABLE)),
}


@dataclass(frozen=True, slots=True)
class RawFormat:
    """What raw samples are. Units: `rate` in Hz."""

    sample_format: SampleFormat
    rate: int
    channels: int


class RawReader:
    """Whole frames out of pieces that may end inside of one; what is left of a frame waits for the next piece."""

    def __init__(self, raw: RawFormat) -> None:
        self._raw = raw
        self._sample_bytes, self._read = _READERS[raw.sample_format]
        self._rest = b""

    def feed(self, data: bytes) -> Pcm:
        """Read the next piece; the audio may be empty. What is no number is silence."""
        joined = self._rest + data
        whole = len(joined) - len(joined) % (self._sample_bytes * self._raw.channels)
        self._rest = joined[whole:]
        samples = presentable(self._read(joined[:whole]))
        return Pcm.from_bytes(samples.tobytes(), self._raw.rate, self._raw.channels)
