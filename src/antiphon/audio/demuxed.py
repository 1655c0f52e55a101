"""Every other container into blocks of samples through PyAV (FFmpeg); the demuxer is named, never probed.

FFmpeg given a choice would open playlists, session descriptions and devices. So: one demuxer by name, no protocol, no
second file, and decoders from a list. It asks FFmpeg for nothing but frames.
"""

import os
from collections.abc import Generator, Iterator
from itertools import chain
from typing import BinaryIO, NoReturn

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from numpy.typing import NDArray

from antiphon.audio.blocks import BLOCK_SAMPLES, AudioBlocks, Samples
from antiphon.audio.containers import ADTS, MP3, MP4, Container, damaged
from antiphon.audio.convert import BlockConverter
from antiphon.audio.lengths import Corrections, corrections
from antiphon.audio.limits import DecodeLimits
from antiphon.audio.mp4 import check_sample_counts
from antiphon.audio.samples import presentable

DECODERS = (
    "aac alac flac mp1 mp1float mp2 mp2float mp3 mp3float opus libopus vorbis libvorbis speex libspeex "
    "pcm_alaw pcm_mulaw pcm_u8 pcm_s8 pcm_s16le pcm_s16be pcm_s24le pcm_s24be pcm_s32le pcm_s32be pcm_f32le pcm_f32be "
    "pcm_f64le pcm_f64be adpcm_ima_qt adpcm_ima_wav adpcm_ms gsm_ms"
)
"""The decoders that a file may ask for: what speech is recorded in. FFmpeg has hundreds more."""

_MAX_PACKETS_PER_SECOND = 2_000
_MAX_IDLE_PACKETS = 10_000
"""Opus has at most 400 packets a second. A packet has its price, so a forged file of one-byte packets costs hours."""

_SCALES = {np.dtype("u1"): 2.0**7, np.dtype("i2"): 2.0**15, np.dtype("i4"): 2.0**31}


def open_demuxed(body: BinaryIO, container: Container, limits: DecodeLimits) -> AudioBlocks:
    """Open a container and decode up to its first frame, which fixes rate and channels.

    Raises InvalidRequest, and TooLarge before anything is decoded if the container declares more than the limits allow.
    """
    frames = _frames(body, container, limits)
    first = next(frames, None)
    if first is None:
        raise damaged(container, "no audio in it can be decoded")
    rate, channels = first.sample_rate, first.layout.nb_channels
    limits.check_format(rate, channels)
    return AudioBlocks(rate, channels, _gathered(_uniform(chain([first], frames), rate, channels, limits)))


def _frames(body: BinaryIO, container: Container, limits: DecodeLimits) -> Iterator[AudioFrame]:
    """Decoded frames of the first audio stream. A packet that is damaged is left out, as players do."""
    if container is MP4:
        check_sample_counts(body)
    try:
        with _open(body, container) as opened:
            stream = _audio_stream(opened, container)
            _check_declared_length(opened, stream, container, limits)
            yield from _decoded(opened, stream, container)
    except (av.FFmpegError, ValueError, OverflowError, OSError) as exc:
        raise damaged(container, "it cannot be decoded") from exc


def _decoded(opened: InputContainer, stream: AudioStream, container: Container) -> Iterator[AudioFrame]:
    patience: float = _MAX_IDLE_PACKETS
    for packet in opened.demux(stream):
        patience -= 1
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            frames = []
        for frame in frames:
            patience += frame.samples * _MAX_PACKETS_PER_SECOND / max(frame.sample_rate, 1)
            yield frame
        if patience < 0:
            raise damaged(container, "it is cut into more packets than it has sound")


def _open(body: BinaryIO, container: Container) -> InputContainer:
    options = {
        "protocol_whitelist": "",
        "format_whitelist": container.demuxer,
        "codec_whitelist": DECODERS.replace(" ", ","),
    }
    return av.open(
        _Source(body, corrections(body, container)),
        mode="r",
        format=container.demuxer,
        options=options,
        metadata_errors="replace",
        io_open=_refuse_to_open,
    )


class _Source:
    """A file as FFmpeg reads it: with its lengths corrected, and ending at its end.

    Forged sizes lead to places that not every kind of file has.
    """

    def __init__(self, body: BinaryIO, corrected: Corrections) -> None:
        self._body = body
        self._corrected = corrected
        self._size = body.seek(0, os.SEEK_END)
        body.seek(0)
        self.tell = body.tell

    def read(self, size: int) -> bytes:
        """Read on, with the corrections in the place of the file's own bytes."""
        start = self._body.tell() if self._corrected else 0
        data = self._body.read(size)
        for position, correct in self._corrected.items():
            begin, end = max(position, start), min(position + len(correct), start + len(data))
            if begin < end:
                data = data[: begin - start] + correct[begin - position : end - position] + data[end - start :]
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go there, or to the end."""
        return self._body.seek(min(offset, self._size), whence)


def _refuse_to_open(_url: str, _flags: int, _options: dict[str, str]) -> NoReturn:
    """FFmpeg's request for a second file or a socket, which no upload may make."""
    raise PermissionError("an audio file may not refer to another")


def _audio_stream(opened: InputContainer, container: Container) -> AudioStream:
    if not opened.streams.audio:
        raise damaged(container, "it holds no audio")
    stream = opened.streams.audio[0]
    decoder: AudioCodecContext | None = stream.codec_context
    if decoder is None or decoder.name not in DECODERS.split():
        raise damaged(container, f"its codec {decoder.name if decoder else ''} is not accepted")
    decoder.thread_count = 1
    return stream


def _check_declared_length(
    opened: InputContainer, stream: AudioStream, container: Container, limits: DecodeLimits
) -> None:
    """Refuse a file that declares more audio than there may be; one that declares less is held to what it has.

    MP3 and ADTS declare nothing: what FFmpeg says of them is a guess from the first frames.
    """
    if container in (MP3, ADTS):
        return
    seconds = 0.0
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    elif opened.duration is not None:
        seconds = opened.duration / av.time_base
    decoder = stream.codec_context
    limits.check_declared(seconds, decoder.sample_rate, decoder.channels)


def _uniform(frames: Iterator[AudioFrame], rate: int, channels: int, limits: DecodeLimits) -> Iterator[Samples]:
    """Interleaved samples at one rate; frames that change it in mid-stream (joined files) are converted to it."""
    converter = BlockConverter(rate, channels, rate, channels)
    for frame in frames:
        source = frame.sample_rate, frame.layout.nb_channels
        if source != (converter.rate_in, converter.channels_in):
            limits.check_format(*source)
            yield converter.finish()
            converter = BlockConverter(*source, rate, channels)
        for piece in _interleaved(frame):
            yield from converter.feed(piece)
    yield converter.finish()


def _interleaved(frame: AudioFrame) -> Iterator[Samples]:
    """The samples of a frame, planar or packed, as flat floats; integers are scaled by their range."""
    array: NDArray[np.generic] = frame.to_ndarray()
    by_frame = array.T if frame.format.is_planar else array.reshape(-1, frame.layout.nb_channels)
    step = max(1, BLOCK_SAMPLES // frame.layout.nb_channels)
    scale = _SCALES.get(array.dtype)
    for start in range(0, len(by_frame), step):
        flat = by_frame[start : start + step].ravel()
        if scale is not None:
            offset = scale if flat.dtype == np.uint8 else 0.0
            yield ((flat.astype(np.float64) - offset) / scale).astype(np.float32)
        elif flat.dtype == np.float64:
            yield presentable(flat.astype(np.float64, copy=False))
        else:
            yield flat.astype(np.float32, copy=False)


def _gathered(blocks: Iterator[Samples]) -> Generator[Samples, None, None]:
    """Joins a codec's small frames, so that what follows is paid once a block."""
    held: list[Samples] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count >= BLOCK_SAMPLES:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)
