"""The forms in which audio comes over the Realtime protocol, and what makes a file of it. It knows no event."""

import struct
from dataclasses import dataclass

from antiphon.audio import riff
from antiphon.audio.raw import RawFormat, SampleFormat

_UNKNOWN_BYTES = 2**32 - 1
"""What a WAV header says where its samples go on until the end of the file."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A form of mono audio; `label` and `old_label` are its names in the two versions, `tag` is a WAV file's."""

    label: str
    old_label: str
    raw: RawFormat
    sample_bytes: int
    tag: int

    def seconds(self, size_bytes: int) -> float:
        """How long so many bytes sound."""
        return size_bytes / (self.raw.rate * self.sample_bytes)

    def wav_header(self) -> bytes:
        """What makes a WAV file of the samples that follow it, however many."""
        rate, size = self.raw.rate, self.sample_bytes
        layout = struct.pack("<HHIIHH", self.tag, 1, rate, rate * size, size, 8 * size)
        start = struct.pack("<4sI4s4sI", b"RIFF", _UNKNOWN_BYTES, b"WAVE", b"fmt ", len(layout))
        return start + layout + struct.pack("<4sI", b"data", _UNKNOWN_BYTES)


PCM = Wire("audio/pcm", "pcm16", RawFormat(SampleFormat.S16LE, 24_000, 1), 2, riff.PCM)
WIRES = (
    PCM,
    Wire("audio/pcmu", "g711_ulaw", RawFormat(SampleFormat.MULAW, 8_000, 1), 1, riff.MULAW),
    Wire("audio/pcma", "g711_alaw", RawFormat(SampleFormat.ALAW, 8_000, 1), 1, riff.ALAW),
)
"""What the protocol knows; it fixes the rates."""
