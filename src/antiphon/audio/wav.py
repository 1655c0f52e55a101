"""WAV files into blocks of samples; structure is `riff`'s, sample formats are `samples`'.

It is a path of our own because the libraries differ on what users send: streamed files with sizes that were never
filled in, and 24 valid bits in 32, which FFmpeg reads as a packed float and turns into near silence.
"""

from collections.abc import Generator
from typing import BinaryIO

from antiphon.audio import riff
from antiphon.audio.blocks import BLOCK_SAMPLES, AudioBlocks, Samples
from antiphon.audio.containers import Container, damaged
from antiphon.audio.demuxed import open_demuxed
from antiphon.audio.limits import DecodeLimits
from antiphon.audio.samples import ALAW_TABLE, MULAW_TABLE, Reader, companded, floating, signed, unsigned_8

_COMPRESSED_TAGS = {0x0002: "Microsoft ADPCM", 0x0011: "IMA ADPCM", 0x0031: "GSM 6.10", 0x0050: "MPEG", 0x0055: "MP3"}


def open_wav(body: BinaryIO, container: Container, limits: DecodeLimits) -> AudioBlocks:
    """Read the header of a WAV file; raises InvalidRequest for one that cannot be decoded."""
    layout = riff.read_layout(body, container)
    wav_format = layout.format
    limits.check_format(wav_format.rate, wav_format.channels)
    if wav_format.tag in _COMPRESSED_TAGS:
        return open_demuxed(body, container, limits)
    read = _reader(wav_format, container)
    frame_bytes = wav_format.sample_bytes * wav_format.channels
    frames = layout.size // frame_bytes
    blocks = _blocks(body, layout.start, frames, frame_bytes, read)
    return AudioBlocks(wav_format.rate, wav_format.channels, blocks, frames)


def _reader(wav_format: riff.WavFormat, container: Container) -> Reader:
    size, bits = wav_format.sample_bytes, wav_format.bits
    match wav_format.tag:
        case riff.PCM if size == 1 and bits == 8:
            return unsigned_8
        case riff.PCM if 2 <= size <= 4 and bits >= 8:
            return signed(size)
        case riff.FLOAT if size in (4, 8) and bits == size * 8:
            return floating(size)
        case riff.MULAW if size == 1:
            return companded(MULAW_TABLE)
        case riff.ALAW if size == 1:
            return companded(ALAW_TABLE)
        case tag:
            raise damaged(container, f"its samples (tag 0x{tag:04x}, {bits} bits in {size} bytes) cannot be read")


def _blocks(body: BinaryIO, start: int, frames: int, frame_bytes: int, read: Reader) -> Generator[Samples, None, None]:
    block_frames = max(1, BLOCK_SAMPLES * 4 // frame_bytes)
    body.seek(start)
    while frames:
        data = body.read(min(frames, block_frames) * frame_bytes)
        whole = len(data) // frame_bytes
        if not whole:
            return
        frames -= whole
        yield read(data[: whole * frame_bytes])
