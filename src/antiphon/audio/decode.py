"""The one way in for audio that came from outside: any accepted container into `Pcm`, within limits.

A file is what its bytes say; names and media types are not asked. It blocks: call it from a thread that may.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import BinaryIO

from antiphon.audio.blocks import AudioBlocks, Samples
from antiphon.audio.containers import WAV, WAVE64, Container, damaged, recognise
from antiphon.audio.demuxed import open_demuxed
from antiphon.audio.limits import DecodeLimits
from antiphon.audio.samples import presentable
from antiphon.audio.wav import open_wav
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import PcmWriter, accept_all

__all__ = ["DecodeLimits", "decode", "open_audio"]


def decode(body: BinaryIO, limits: DecodeLimits, on_growth: Callable[[int], None] = accept_all) -> Pcm:
    """Decode an upload whole, as `open_audio` does.

    `on_growth` is told each block's size in bytes before it is kept and may raise to refuse it.
    """
    with (
        closing(open_audio(body, limits)) as audio,
        PcmWriter(audio.rate, audio.channels, on_growth) as writer,
    ):
        for block in audio.blocks:
            writer.write(block.data)
        return writer.finish()


def open_audio(body: BinaryIO, limits: DecodeLimits) -> AudioBlocks:
    """Decode an upload at its native rate and channels: interleaved float32, finite; floats beyond -1..1 are kept.

    `body` must be seekable; it is read from its start and stays open. A file that was cut off gives what is there.
    Raises InvalidRequest (param "file") for what is no accepted audio or holds none, TooLarge (param "file") beyond
    `limits`, here or at the block that shows it. Close what it returns.
    """
    container = recognise(body)
    open_container = open_wav if container in (WAV, WAVE64) else open_demuxed
    audio = open_container(body, container, limits)
    return replace(audio, blocks=_within(limits, audio, container))


def _within(limits: DecodeLimits, audio: AudioBlocks, container: Container) -> Generator[Samples, None, None]:
    samples = 0
    with closing(audio):
        limits.check_length(audio.frames or 0, audio.rate, audio.channels)
        for block in audio.blocks:
            samples += len(block)
            limits.check_length(samples // audio.channels, audio.rate, audio.channels)
            yield presentable(block)
    if not samples:
        raise damaged(container, "it holds no samples")
