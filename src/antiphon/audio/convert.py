"""Audio to another rate and number of channels, in blocks; it reads no container.

Resampling is libsoxr's (HQ). Its stream gives the same samples however the input is cut, so results do not depend on
block sizes.
"""

from collections.abc import Iterator

import numpy as np
import soxr

from antiphon.audio.blocks import BLOCK_SAMPLES, Samples, blocks_of, samples_of
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import PcmWriter


def convert(pcm: Pcm, rate: int, channels: int) -> Pcm:
    """Mix and resample `pcm` to `rate` in Hz and `channels`; the same object when nothing is to do.

    The length is that of the input, rounded to a frame; of a clip that sounds at all, one frame is left at least.
    """
    if (pcm.rate, pcm.channels) == (rate, channels):
        return pcm
    converter = BlockConverter(pcm.rate, pcm.channels, rate, channels)
    with PcmWriter(rate, channels) as writer:
        for samples in blocks_of(pcm):
            for block in converter.feed(samples):
                writer.write(block.data)
        writer.write(converter.finish().data)
        if writer.size_bytes == 0 and pcm.frames:
            writer.write(mix(samples_of(pcm)[: pcm.channels], pcm.channels, channels).data)
        return writer.finish()


class PieceConverter:
    """Does as `convert`, piece by piece, for audio that has no end yet."""

    def __init__(self, rate_in: int, channels_in: int, rate_out: int, channels_out: int) -> None:
        self._blocks = BlockConverter(rate_in, channels_in, rate_out, channels_out)
        self._rate = rate_out
        self._channels = channels_out

    def feed(self, pcm: Pcm) -> Pcm:
        """Convert the next piece; what the resampler keeps comes later, so this may be empty."""
        return self._joined(list(self._blocks.feed(samples_of(pcm))))

    def finish(self) -> Pcm:
        """Give what is left; nothing may be fed afterwards."""
        return self._joined([self._blocks.finish()])

    def _joined(self, blocks: list[Samples]) -> Pcm:
        samples = np.concatenate([*blocks, np.empty(0, np.float32)])
        return Pcm.from_bytes(samples.tobytes(), self._rate, self._channels)


def mix(samples: Samples, channels_in: int, channels_out: int) -> Samples:
    """Interleaved samples with another number of channels: their mean, so that every channel's words are heard.

    Each of several outgoing channels carries that mean.
    """
    if channels_in == channels_out:
        return samples
    mono = samples.reshape(-1, channels_in).mean(axis=1, dtype=np.float32)
    return np.repeat(mono, channels_out)


class BlockConverter:
    """Mixes and resamples a stream of interleaved blocks; `finish` gives what the resampler still holds."""

    def __init__(self, rate_in: int, channels_in: int, rate_out: int, channels_out: int) -> None:
        self.rate_in = rate_in
        self.channels_in = channels_in
        self._channels_out = channels_out
        # All that mixing keeps is the mean, so that alone is resampled.
        self._inner = 1 if channels_in != channels_out else channels_in
        growth = max(1, -(-rate_out // rate_in))
        self._piece = max(1, BLOCK_SAMPLES // (channels_in * growth)) * channels_in
        self._stream = None
        if rate_in != rate_out:
            self._stream = soxr.ResampleStream(rate_in, rate_out, self._inner, dtype="float32", quality="HQ")

    def feed(self, samples: Samples) -> Iterator[Samples]:
        """Convert whole frames, in pieces of a bounded size; they may be empty at first."""
        for start in range(0, len(samples), self._piece):
            yield self._converted(samples[start : start + self._piece], last=False)

    def finish(self) -> Samples:
        """End the stream; nothing may be fed afterwards."""
        return self._converted(np.empty(0, np.float32), last=True)

    def _converted(self, samples: Samples, last: bool) -> Samples:
        narrow = mix(samples, self.channels_in, self._inner)
        if self._stream is not None:
            narrow = self._stream.resample_chunk(narrow.reshape(-1, self._inner), last=last).ravel()
        return mix(narrow, self._inner, self._channels_out)
