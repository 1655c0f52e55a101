"""Samples into the bytes of an answer, whole or piece by piece: 16-bit WAV and raw PCM itself; it knows no HTTP.

What a library's encoder makes is `compressed`'s. The WAV header is the 44 bytes of the RIFF WAVE form with a
WAVEFORMAT chunk (Microsoft/IBM, 1991), little-endian.
"""

import io
import struct
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import BinaryIO

from antiphon.audio.blocks import blocks_of, samples_of
from antiphon.audio.compressed import COMPRESSED, CompressedEncoder, Piece, encoded_pieces
from antiphon.audio.samples import to_int16
from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.vocabulary.audio import Pcm

SPOOL_BYTES = 1024 * 1024
"""An encoded answer above this size lies in an unlinked file."""

CONTENT_TYPES = {
    AudioFormat.WAV: "audio/wav",
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.OPUS: "audio/opus",
    AudioFormat.FLAC: "audio/flac",
    AudioFormat.AAC: "audio/aac",
    AudioFormat.PCM: "audio/pcm",
}
"""As OpenAI's API names them; its opus is in an Ogg file, too."""

_SAMPLE_BYTES = 2
_UNKNOWN_SIZE = 0xFFFFFFFF
_RIFF_OVERHEAD = 36


def encode(pcm: Pcm, audio_format: AudioFormat) -> Encoded:
    """Encode `pcm` whole: 16-bit samples, rounded and clipped, no dither; headers have true sizes.

    Sizes that a WAV header's 32 bits cannot hold are written as unknown, as in a stream. Lossy formats are made from
    the floats. Raises EngineError.
    """
    with closing(AnswerFile(pcm, audio_format)) as answer, closing(_pieces(pcm, audio_format)) as pieces:
        for piece in pieces:
            answer.write(piece)
        return answer.finish()


class AnswerFile:
    """Where a whole answer grows: memory, or an unlinked file where its samples take more than `SPOOL_BYTES`."""

    def __init__(self, pcm: Pcm, audio_format: AudioFormat) -> None:
        large = len(pcm.samples) * _SAMPLE_BYTES > SPOOL_BYTES
        self._body: BinaryIO | None = io.BytesIO()
        if large:
            self._body = tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115 (closed by its taker, or by `close`)
        self._size_bytes = 0
        self._content_type = CONTENT_TYPES[audio_format]

    def write(self, piece: Piece) -> None:
        """Put a piece in its place."""
        assert self._body is not None
        self._body.seek(piece.offset)
        self._body.write(piece.data)
        self._size_bytes = max(self._size_bytes, piece.offset + len(piece.data))

    def finish(self) -> Encoded:
        """The answer, at its start; it is its taker's to close."""
        assert self._body is not None
        body, self._body = self._body, None
        body.seek(0)
        return Encoded(body, self._size_bytes, self._content_type)

    def close(self) -> None:
        """Drop what was written, unless it is finished."""
        if self._body is not None:
            self._body.close()


class StreamEncoder:
    """Encodes audio whose end is not known yet; a WAV header then says 0xFFFFFFFF, which readers take as "all".

    Calls may come from any thread.
    """

    def __init__(self, audio_format: AudioFormat, rate: int, channels: int = 1) -> None:
        self.content_type = CONTENT_TYPES[audio_format]
        self._audio_format = audio_format
        self._rate = rate
        self._channels = channels
        self._compressed: CompressedEncoder | None = None
        if audio_format in COMPRESSED:
            self._compressed = CompressedEncoder(audio_format, rate, channels, in_place=False)

    @property
    def holds_back(self) -> bool:
        """Whether there is something to finish and to close."""
        return self._compressed is not None

    def header(self) -> bytes:
        """What goes before the first samples; empty where there is none, or it comes with them."""
        return b"" if self._audio_format is not AudioFormat.WAV else _wav_header(self._rate, self._channels, None)

    def feed(self, pcm: Pcm) -> bytes:
        """Encode the next piece; raises ValueError when its rate or channels are not the stream's."""
        if (pcm.rate, pcm.channels) != (self._rate, self._channels):
            raise ValueError("the audio changed its rate or channels in mid-stream")
        if self._compressed is not None:
            return _joined(self._compressed.feed(samples_of(pcm)))
        return b"".join(_int16_blocks(pcm))

    def finish(self) -> bytes:
        """What was held back, and the end of the file."""
        return b"" if self._compressed is None else _joined(self._compressed.finish())

    def close(self) -> None:
        """Let go of a file that may not be at its end; harmless when done twice."""
        if self._compressed is not None:
            self._compressed.close()


def _pieces(pcm: Pcm, audio_format: AudioFormat) -> Generator[Piece, None, None]:
    if audio_format in COMPRESSED:
        yield from encoded_pieces(blocks_of(pcm), audio_format, pcm.rate, pcm.channels)
        return
    offset = 0
    if audio_format is AudioFormat.WAV:
        yield Piece(0, header := _wav_header(pcm.rate, pcm.channels, len(pcm.samples) * _SAMPLE_BYTES))
        offset = len(header)
    for block in _int16_blocks(pcm):
        yield Piece(offset, block)
        offset += len(block)


def _joined(pieces: Iterable[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def _int16_blocks(pcm: Pcm) -> Iterator[bytes]:
    for samples in blocks_of(pcm):
        yield to_int16(samples).tobytes()


def _wav_header(rate: int, channels: int, data_bytes: int | None) -> bytes:
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
