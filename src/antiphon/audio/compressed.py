"""Samples into mp3, Ogg Opus, FLAC and AAC (ADTS) through PyAV (FFmpeg), piece by piece; it opens no file.

A muxer and an encoder are named for each format, and nothing random or of their version goes into the bytes, so that
equal samples give equal bytes. MP3 and AAC begin with the encoder's delay; mp3 says how much, where its size is known.
"""

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer

from antiphon.audio.blocks import BLOCK_SAMPLES, Samples
from antiphon.audio.convert import BlockConverter
from antiphon.audio.samples import presentable, to_int16
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.audio import BYTES_PER_SAMPLE
from antiphon.vocabulary.errors import EngineError

_LAYOUTS = {1: "mono", 2: "stereo"}
"""More channels are mixed to one: mp3 has no more than these."""


@dataclass(frozen=True, slots=True)
class _Coding:
    """How FFmpeg makes a format.

    Units: `bits_per_s` for each channel, None for what loses nothing; `rates` in Hz, ascending, empty for any.
    """

    muxer: str
    encoder: str
    bits_per_s: int | None = None
    rates: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def rate_for(self, rate: int) -> int:
        """The lowest rate of the format that keeps what `rate` does, else its highest."""
        return min((own for own in self.rates if own >= rate), default=self.rates[-1]) if self.rates else rate


_MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)

_CODINGS: Mapping[AudioFormat, _Coding] = {
    AudioFormat.MP3: _Coding("mp3", "libmp3lame", 64_000, _MPEG_RATES, {"id3v2_version": "0"}),
    # A page a second, FFmpeg's own choice, would hold a stream back for as long.
    AudioFormat.OPUS: _Coding(
        "ogg", "libopus", 32_000, (8_000, 12_000, 16_000, 24_000, 48_000), {"page_duration": "200000"}
    ),
    AudioFormat.FLAC: _Coding("flac", "flac"),
    AudioFormat.AAC: _Coding("adts", "aac", 64_000, (*_MPEG_RATES, 64_000, 88_200, 96_000)),
}

COMPRESSED = frozenset(_CODINGS)
"""The formats that a library's encoder makes."""


class Piece(NamedTuple):
    """Bytes and where in the file they go; a header is written again once the sizes are known."""

    offset: int
    data: bytes


class CompressedEncoder:
    """One file in the making; the pieces of `feed`, `finish` and nothing else are it.

    Units: `rate` in Hz; samples are interleaved floats, clipped at -1..1. With `in_place` pieces come in the size of a
    buffer and may go over earlier ones; without, each is what can be told by then, and follows the one before.
    Calls may come from any thread. Raises EngineError where FFmpeg does not go on.
    """

    def __init__(self, audio_format: AudioFormat, rate: int, channels: int, *, in_place: bool) -> None:
        self._coding = _CODINGS[audio_format]
        self._channels = channels if channels in _LAYOUTS else 1
        self._rate = self._coding.rate_for(rate)
        self._converter = BlockConverter(rate, channels, self._rate, self._channels)
        self._sink = _Sink(in_place)
        self._opened: tuple[OutputContainer, AudioStream] | None = None
        self._ended = False
        self._frames = 0
        # A call that nobody waits for any more may still be under way when the next one comes, and FFmpeg has no locks.
        self._turn = threading.Lock()

    def feed(self, samples: Samples) -> list[Piece]:
        """Encode whole frames; what can be told by now, which may be nothing."""
        with self._turn, _faults():
            for block in self._converter.feed(samples):
                self._encode(block)
            return self._sink.take()

    def finish(self) -> list[Piece]:
        """End the file; nothing may be fed afterwards."""
        with self._turn, _faults():
            if not self._ended:
                self._encode(self._converter.finish())
                container, stream = self._open()
                container.start_encoding()  # a sound without samples is a file as well
                container.mux(stream.encode(None))
                self._end()
            return self._sink.take()

    def close(self) -> None:
        """Let go of what FFmpeg holds, in a file that is not wanted any more; harmless when done twice, or at its end.

        PyAV's container and its streams refer to each other, and megabytes to them: they are not left to the collector.
        """
        with self._turn, suppress(av.FFmpegError):
            self._end()
            self._sink.take()  # an end that nobody wants

    def _end(self) -> None:
        self._ended = True
        if self._opened is not None:
            container, _ = self._opened
            self._opened = None
            container.close()

    def _encode(self, samples: Samples) -> None:
        if not len(samples) or self._ended:
            return
        container, stream = self._open()
        frame = self._frame_of(samples)
        frame.sample_rate = self._rate
        frame.pts = self._frames
        self._frames += frame.samples
        container.mux(stream.encode(frame))

    def _frame_of(self, samples: Samples) -> AudioFrame:
        layout = _LAYOUTS[self._channels]
        if self._coding.bits_per_s is None:
            return AudioFrame.from_ndarray(to_int16(samples).reshape(1, -1), "s16", layout)
        clipped = np.clip(presentable(samples), -1.0, 1.0)
        return AudioFrame.from_ndarray(clipped.reshape(1, -1), "flt", layout)

    def _open(self) -> tuple[OutputContainer, AudioStream]:
        """The container and its stream, opened when they are first needed: that takes milliseconds."""
        if self._opened is None:
            coding = self._coding
            options = {"fflags": "+bitexact", "flush_packets": "0" if self._sink.in_place else "1", **coding.options}
            container = av.open(self._sink, "w", format=coding.muxer, options=options)
            stream = container.add_stream(coding.encoder, rate=self._rate)
            assert isinstance(stream, AudioStream)
            stream.layout = _LAYOUTS[self._channels]
            stream.codec_context.thread_count = 1
            if coding.bits_per_s is not None:
                stream.codec_context.bit_rate = coding.bits_per_s * self._channels
            self._opened = container, stream
        return self._opened


def encoded_pieces(
    blocks: Iterable[Samples], audio_format: AudioFormat, rate: int, channels: int
) -> Generator[Piece, None, None]:
    """A whole file of these samples, its header with true sizes. Close it where it is not wanted to its end."""
    with closing(CompressedEncoder(audio_format, rate, channels, in_place=True)) as encoder:
        for block in blocks:
            yield from encoder.feed(block)
        yield from encoder.finish()


def blocks_in(file: BinaryIO, channels: int) -> Iterator[Samples]:
    """The interleaved 32-bit floats of a file from its start, in whole frames."""
    file.seek(0)
    while data := file.read(BLOCK_SAMPLES * channels * BYTES_PER_SAMPLE):
        yield np.frombuffer(data, np.float32)


class _Sink:
    """What FFmpeg writes to: it keeps what is written until it is taken."""

    def __init__(self, in_place: bool) -> None:
        self.in_place = in_place
        self._pieces: list[Piece] = []
        self._position = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(Piece(self._position, data))
        self._position += len(data)
        return len(data)

    def seekable(self) -> bool:
        return self.in_place

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence != 0:
            raise OSError("only places from the start are known")
        self._position = offset
        return offset

    def tell(self) -> int:
        return self._position

    def take(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces


@contextmanager
def _faults() -> Iterator[None]:
    """Let a fault of FFmpeg's inside the block be one of our own side, not the client's."""
    try:
        yield
    except av.FFmpegError as fault:
        raise EngineError("the audio could not be encoded") from fault
