"""Every other container into blocks of samples through PyAV (FFmpeg); the demuxer is named, never probed.

FFmpeg given a choice would open playlists, session descriptions and devices. So: one demuxer by name, no protocol, no
second file, and decoders from a list. It asks FFmpeg for nothing but frames.
"""

from collections.abc import Generator, Iterator
from typing import BinaryIO, NoReturn

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from numpy.typing import NDArray

from antiphon.audio.blocks import BLOCK_SAMPLES, AudioBlocks, Samples
from antiphon.audio.containers import Container, damaged
from antiphon.audio.convert import BlockConverter
from antiphon.audio.samples import presentable

DECODERS = (
    "aac alac flac mp1 mp1float mp2 mp2float mp3 mp3float opus libopus vorbis libvorbis speex libspeex "
    "pcm_alaw pcm_mulaw pcm_u8 pcm_s8 pcm_s16le pcm_s16be pcm_s24le pcm_s24be pcm_s32le pcm_s32be pcm_f32le pcm_f32be "
    "pcm_f64le pcm_f64be adpcm_ima_qt adpcm_ima_wav adpcm_ms gsm_ms"
)
"""The decoders that a file may ask for: what speech is recorded in. FFmpeg has hundreds more."""

_SCALES = {np.dtype("u1"): 2.0**7, np.dtype("i2"): 2.0**15, np.dtype("i4"): 2.0**31}


def open_demuxed(body: BinaryIO, container: Container) -> AudioBlocks:
    """Open a container and decode up to its first frame, which fixes rate and channels; raises InvalidRequest."""
    frames = _frames(body, container)
    first = next(frames, None)
    if first is None:
        raise damaged(container, "no audio in it can be decoded")
    rate, channels = first.sample_rate, first.layout.nb_channels
    return AudioBlocks(rate, channels, _gathered(_uniform(first, frames, rate, channels)))


def _frames(body: BinaryIO, container: Container) -> Iterator[AudioFrame]:
    """Decoded frames of the first audio stream. A packet that is damaged is left out, as players do."""
    body.seek(0)
    try:
        with _open(body, container) as opened:
            stream = _audio_stream(opened, container)
            for packet in opened.demux(stream):
                try:
                    yield from packet.decode()
                except av.InvalidDataError:
                    continue
    except (av.FFmpegError, ValueError, OverflowError) as exc:
        raise damaged(container, "it cannot be decoded") from exc


def _open(body: BinaryIO, container: Container) -> InputContainer:
    options = {
        "protocol_whitelist": "",
        "format_whitelist": container.demuxer,
        "codec_whitelist": DECODERS.replace(" ", ","),
    }
    return av.open(
        body, mode="r", format=container.demuxer, options=options, metadata_errors="replace", io_open=_refuse_to_open
    )


def _refuse_to_open(_url: str, _flags: int, _options: dict[str, str]) -> NoReturn:
    """FFmpeg's request for a second file or a socket, which no upload may make."""
    raise PermissionError("an audio file may not refer to another")


def _audio_stream(opened: InputContainer, container: Container) -> AudioStream:
    if not opened.streams.audio:
        raise damaged(container, "it holds no audio")
    stream = opened.streams.audio[0]
    if stream.codec_context.name not in DECODERS.split():
        raise damaged(container, f"its codec {stream.codec_context.name} is not accepted")
    stream.codec_context.thread_count = 1
    return stream


def _uniform(first: AudioFrame, rest: Iterator[AudioFrame], rate: int, channels: int) -> Iterator[Samples]:
    """Interleaved samples at one rate; frames that change it in mid-stream (joined files) are converted to it."""
    converter = BlockConverter(rate, channels, rate, channels)
    yield converter.feed(_interleaved(first))
    for frame in rest:
        source = frame.sample_rate, frame.layout.nb_channels
        if source != (converter.rate_in, converter.channels_in):
            yield converter.finish()
            converter = BlockConverter(*source, rate, channels)
        yield converter.feed(_interleaved(frame))
    yield converter.finish()


def _interleaved(frame: AudioFrame) -> Samples:
    """The samples of a frame, planar or packed, as flat floats; integers are scaled by their range."""
    array: NDArray[np.generic] = frame.to_ndarray()
    flat = array.T.ravel() if frame.format.is_planar else array.ravel()
    scale = _SCALES.get(flat.dtype)
    if scale is None:
        return flat.astype(np.float32, copy=False) if flat.dtype == np.float32 else presentable(flat.astype(np.float64))
    offset = scale if flat.dtype == np.uint8 else 0.0
    return ((flat.astype(np.float64) - offset) / scale).astype(np.float32)


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
