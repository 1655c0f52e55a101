"""Samples into the bytes of an answer, whole or piece by piece: 16-bit WAV and raw PCM; it knows no HTTP.

The header is the 44 bytes of the RIFF WAVE form with a WAVEFORMAT chunk (Microsoft/IBM, 1991), little-endian.
"""

import io
import struct
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from antiphon.audio.blocks import BLOCK_SAMPLES, samples_of
from antiphon.audio.samples import to_int16
from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.vocabulary.audio import Pcm

SPOOL_BYTES = 1024 * 1024
"""An encoded answer above this size lies in an unlinked file."""

CONTENT_TYPES = {AudioFormat.WAV: "audio/wav", AudioFormat.PCM: "audio/pcm"}

_SAMPLE_BYTES = 2
_UNKNOWN_SIZE = 0xFFFFFFFF
_RIFF_OVERHEAD = 36


def encode(pcm: Pcm, audio_format: AudioFormat) -> Encoded:
    """Encode `pcm` whole: 16-bit little-endian samples, rounded and clipped, no dither; a WAV header has true sizes.

    Sizes that 32 bits cannot hold are written as unknown, as in a stream.
    """
    data_bytes = len(pcm.samples) * _SAMPLE_BYTES
    header = _header(audio_format, pcm.rate, pcm.channels, data_bytes)
    size = len(header) + data_bytes
    body: BinaryIO = io.BytesIO() if size <= SPOOL_BYTES else tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115
    try:
        body.write(header)
        body.writelines(_int16_blocks(pcm))
        body.seek(0)
    except BaseException:
        body.close()
        raise
    return Encoded(body, size, CONTENT_TYPES[audio_format])


class StreamEncoder:
    """Encodes audio whose end is not known yet; a WAV header then says 0xFFFFFFFF, which readers take as "all"."""

    def __init__(self, audio_format: AudioFormat, rate: int, channels: int = 1) -> None:
        self.content_type = CONTENT_TYPES[audio_format]
        self._audio_format = audio_format
        self._rate = rate
        self._channels = channels

    def header(self) -> bytes:
        """What goes before the first samples; empty for raw PCM."""
        return _header(self._audio_format, self._rate, self._channels, None)

    def feed(self, pcm: Pcm) -> bytes:
        """Encode the next piece; raises ValueError when its rate or channels are not the stream's."""
        if (pcm.rate, pcm.channels) != (self._rate, self._channels):
            raise ValueError("the audio changed its rate or channels in mid-stream")
        return b"".join(_int16_blocks(pcm))


def _int16_blocks(pcm: Pcm) -> Iterator[bytes]:
    samples = samples_of(pcm)
    for start in range(0, len(samples), BLOCK_SAMPLES):
        yield to_int16(samples[start : start + BLOCK_SAMPLES]).tobytes()


def _header(audio_format: AudioFormat, rate: int, channels: int, data_bytes: int | None) -> bytes:
    if audio_format is AudioFormat.PCM:
        return b""
    known = data_bytes is not None and data_bytes + _RIFF_OVERHEAD < _UNKNOWN_SIZE
    data_size = data_bytes if data_bytes is not None and known else _UNKNOWN_SIZE
    riff_size = data_size + _RIFF_OVERHEAD if known else _UNKNOWN_SIZE
    frame_bytes = channels * _SAMPLE_BYTES
    layout = struct.pack(
        "<4sI4s4sIHHIIHH",
        b"RIFF",
        riff_size,
        b"WAVE",
        b"fmt ",
        16,
        1,
        channels,
        rate,
        rate * frame_bytes,
        frame_bytes,
        16,
    )
    return layout + struct.pack("<4sI", b"data", data_size)
