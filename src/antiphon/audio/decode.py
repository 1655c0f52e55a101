"""The one way in for audio that came from outside: any accepted container into `Pcm`, within limits.

A file is what its bytes say; names and media types are not asked. It blocks: call it from a thread that may.
"""

from collections.abc import Callable
from contextlib import closing
from typing import BinaryIO

from antiphon.audio.blocks import AudioBlocks
from antiphon.audio.containers import WAV, WAVE64, damaged, recognise
from antiphon.audio.demuxed import open_demuxed
from antiphon.audio.limits import DecodeLimits
from antiphon.audio.samples import presentable
from antiphon.audio.wav import open_wav
from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, Pcm
from antiphon.vocabulary.spool import PcmWriter, accept_all

__all__ = ["DecodeLimits", "decode"]


def decode(body: BinaryIO, limits: DecodeLimits, on_growth: Callable[[int], None] = accept_all) -> Pcm:
    """Decode an upload at its native rate and channels: interleaved float32, finite; floats beyond -1..1 are kept.

    `body` must be seekable; it is read from its start and stays open. `on_growth` is told each block's size in bytes
    before it is kept and may raise to refuse it. A file that was cut off gives what is there. Raises InvalidRequest
    (param "file") for what is no accepted audio or holds none, TooLarge (param "file") beyond `limits`.
    """
    container = recognise(body)
    open_container = open_wav if container in (WAV, WAVE64) else open_demuxed
    audio = open_container(body, container, limits)
    with closing(audio):
        pcm = _collect(audio, limits, on_growth)
    if pcm.frames == 0:
        raise damaged(container, "it holds no samples")
    return pcm


def _collect(audio: AudioBlocks, limits: DecodeLimits, on_growth: Callable[[int], None]) -> Pcm:
    limits.check_length(audio.frames or 0, audio.rate, audio.channels)
    with PcmWriter(audio.rate, audio.channels, on_growth) as writer:
        for block in audio.blocks:
            samples = writer.size_bytes // BYTES_PER_SAMPLE + len(block)
            limits.check_length(samples // audio.channels, audio.rate, audio.channels)
            writer.write(presentable(block).data)
        return writer.finish()
