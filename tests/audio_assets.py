"""Audio files for tests, made on the spot: tones and silence in every accepted container, and files to be refused.

Pure functions of their arguments; nothing is read from disk and no speech is in them.
"""

import io
import struct
from collections.abc import Mapping

import av
import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float32]

PCM, FLOAT, ALAW, MULAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_COMPANDED = {MULAW: "ULAW", ALAW: "ALAW"}


def tone(frequency_hz: float, seconds: float, rate: int = 16_000, amplitude: float = 0.5) -> Samples:
    """A mono sine that begins at zero."""
    times = np.arange(round(seconds * rate)) / rate
    return (amplitude * np.sin(2 * np.pi * frequency_hz * times)).astype(np.float32)


def interleave(*channels: Samples) -> Samples:
    """Mono signals of one length as the channels of one flat signal."""
    return np.stack(channels, axis=1).ravel()


def loudest_hz(samples: Samples, rate: int) -> float:
    """The frequency that stands out most in a mono signal, in Hz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


def sample_bytes(samples: Samples, bits: int = 16, tag: int = PCM) -> bytes:
    """Little-endian samples as a WAV file's data chunk holds them."""
    if tag in _COMPANDED:
        raw = io.BytesIO()
        soundfile.write(raw, samples, 8000, format="RAW", subtype=_COMPANDED[tag])
        return raw.getvalue()
    if tag == FLOAT:
        return samples.astype("<f4" if bits == 32 else "<f8").tobytes()
    if bits == 8:
        return np.clip(np.rint(samples * 128) + 128, 0, 255).astype("u1").tobytes()
    full = 2.0 ** (bits - 1)
    integers = np.clip(np.rint(samples.astype(np.float64) * full), -full, full - 1).astype("<i4")
    return integers.view("u1").reshape(-1, 4)[:, : bits // 8].tobytes()


def chunk(name: bytes, body: bytes, size: int | None = None) -> bytes:
    """One RIFF chunk with its pad byte; `size` is what it claims instead of its true size."""
    return name + struct.pack("<I", len(body) if size is None else size) + body + b"\0" * (len(body) % 2)


def fmt_chunk(
    rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    tag: int = PCM,
    align: int | None = None,
    extension: bytes = b"",
) -> bytes:
    """A `fmt ` chunk; `align` is the frame size in bytes where it is not what the other fields say."""
    frame = channels * bits // 8 & 0xFFFF if align is None else align
    return chunk(
        b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * frame & 0xFFFFFFFF, frame, bits) + extension
    )


def extensible_fmt_chunk(
    rate: int, channels: int, bits: int, valid_bits: int, tag: int = PCM, guid_tail: bytes = GUID_TAIL
) -> bytes:
    """A `fmt ` chunk of the extensible kind; `tag` goes into its GUID."""
    extension = struct.pack("<HHIH", 22, valid_bits, 0, tag) + guid_tail
    return fmt_chunk(rate, channels, bits, EXTENSIBLE, extension=extension)


def riff(*chunks: bytes, size: int | None = None) -> bytes:
    """A RIFF WAVE file of these chunks; `size` is what it claims instead of its true size."""
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def wav_bytes(
    samples: Samples, rate: int = 16_000, channels: int = 1, bits: int = 16, tag: int = PCM, size: int | None = None
) -> bytes:
    """A WAV file of flat, interleaved samples; `size` is what header and data chunk claim, as a streamed file does."""
    data = chunk(b"data", sample_bytes(samples, bits, tag), size)
    return riff(fmt_chunk(rate, channels, bits, tag), data, size=size)


def soundfile_bytes(samples: Samples, rate: int, container: str, subtype: str | None = None) -> bytes:
    """A mono file written by libsndfile; `container` and `subtype` are its names."""
    body = io.BytesIO()
    soundfile.write(body, samples, rate, format=container, subtype=subtype)
    return body.getvalue()


def av_bytes(
    samples: Samples, rate: int, container: str, codec: str, options: Mapping[str, str] | None = None
) -> bytes:
    """A mono file written by FFmpeg; `container`, `codec` and `options` are its names."""
    body = io.BytesIO()
    with av.open(body, "w", format=container, options=dict(options or {})) as output:
        stream = output.add_stream(codec, rate=rate)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="mono")
        frame.sample_rate = rate
        frame.pts = 0
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return body.getvalue()


def streamed_webm(samples: Samples, rate: int = 48_000) -> bytes:
    """Opus in WebM as a browser's recorder sends it: live, so of no known duration and of no known sizes."""
    return av_bytes(samples, rate, "webm", "libopus", {"live": "1"})


def good_audio_variants(samples: Samples, rate: int = 16_000) -> dict[str, bytes]:
    """The same mono signal in many accepted files; `rate` must be one that every codec has, such as 16000."""
    return {
        "wav_u8": wav_bytes(samples, rate, bits=8),
        "wav_s16": wav_bytes(samples, rate),
        "wav_s24": wav_bytes(samples, rate, bits=24),
        "wav_s32": wav_bytes(samples, rate, bits=32),
        "wav_f32": wav_bytes(samples, rate, bits=32, tag=FLOAT),
        "wav_f64": wav_bytes(samples, rate, bits=64, tag=FLOAT),
        "wav_mulaw": wav_bytes(samples, rate, bits=8, tag=MULAW),
        "wav_alaw": wav_bytes(samples, rate, bits=8, tag=ALAW),
        "wav_streamed": wav_bytes(samples, rate, size=0xFFFFFFFF),
        "wav_ima_adpcm": soundfile_bytes(samples, rate, "WAV", "IMA_ADPCM"),
        "rf64": soundfile_bytes(samples, rate, "RF64", "PCM_16"),
        "w64": soundfile_bytes(samples, rate, "W64", "PCM_16"),
        "flac": soundfile_bytes(samples, rate, "FLAC"),
        "ogg_flac": av_bytes(samples, rate, "ogg", "flac"),
        "ogg_vorbis": soundfile_bytes(samples, rate, "OGG", "VORBIS"),
        "ogg_opus": soundfile_bytes(samples, rate, "OGG", "OPUS"),
        "mp3": soundfile_bytes(samples, rate, "MP3"),
        "m4a": av_bytes(samples, rate, "ipod", "aac"),
        "m4a_fragmented": av_bytes(samples, rate, "mp4", "aac", {"movflags": "empty_moov+default_base_moof"}),
        "adts": av_bytes(samples, rate, "adts", "aac"),
        "webm_opus": streamed_webm(samples, rate),
        "mka_s16": av_bytes(samples, rate, "matroska", "pcm_s16le"),
        "aiff": soundfile_bytes(samples, rate, "AIFF", "PCM_16"),
        "au_mulaw": soundfile_bytes(samples, rate, "AU", "ULAW"),
        "caf": soundfile_bytes(samples, rate, "CAF", "PCM_16"),
    }


def overcounted_m4a(count: int = 0x7FFFFFFF) -> bytes:
    """An MP4 of a few kilobytes whose sample table counts `count` samples of one byte in one chunk."""
    body = bytearray(av_bytes(tone(440, 0.2), 16_000, "ipod", "aac"))
    sizes, chunks = body.index(b"stsz"), body.index(b"stsc")
    body[sizes + 8 : sizes + 16] = struct.pack(">II", 1, count)
    body[chunks + 16 : chunks + 20] = struct.pack(">I", count)
    return bytes(body)


def overcounted_fragment(count: int = 0x7FFFFFFF) -> bytes:
    """A fragmented MP4 of a few kilobytes whose first run counts `count` samples."""
    body = bytearray(av_bytes(tone(440, 0.2), 16_000, "mp4", "aac", {"movflags": "empty_moov+default_base_moof"}))
    run = body.index(b"trun")
    body[run + 8 : run + 12] = struct.pack(">I", count)
    return bytes(body)


def bad_audio() -> dict[str, bytes]:
    """Files that are no audio or whose headers lie; every one is to be refused, and none is large."""
    sound = sample_bytes(tone(440, 0.1))
    data = chunk(b"data", sound)
    noise = np.random.default_rng(7).integers(0, 256, 40_000, dtype=np.uint8).tobytes()
    return {
        "zero_bytes": b"",
        "header_only": wav_bytes(np.zeros(0, np.float32)),
        "streamed_header_only": wav_bytes(np.zeros(0, np.float32), size=0xFFFFFFFF),
        "riff_12_bytes": b"RIFF\x04\0\0\0WAVE",
        "text": b"this is not audio\n" * 40,
        "html": b"<html><body>404</body></html>",
        "json": b'{"error": "no audio"}',
        "random": noise,
        "raw_mulaw": sample_bytes(tone(440, 1), tag=MULAW),
        "raw_pcm": sound,
        "avi": b"RIFF\x04\0\0\0AVI " + bytes(64),
        "png": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "id3_only": b"ID3\x03\0\0\0\0\0\x0a" + bytes(10),
        "bad_guid": riff(extensible_fmt_chunk(16_000, 1, 16, 16, guid_tail=b"\xee" * 14), data),
        "extensible_cut": riff(fmt_chunk(tag=EXTENSIBLE), data),
        "unknown_tag": riff(fmt_chunk(tag=0x1234), data),
        "fmt_huge": riff(chunk(b"fmt ", fmt_chunk()[8:], size=0xFFFFFFFF), data[:8]),
        "fmt_of_no_length": riff(chunk(b"fmt ", b""), data),
        "fmt_missing": riff(data),
        "size_that_wraps": riff(fmt_chunk(), chunk(b"abcd", bytes(16), size=0xFFFFFFF8)),
        "zero_chunks": riff(fmt_chunk(), chunk(b"zzzz", b"") * 20_000),
        "channels_0": riff(fmt_chunk(channels=0), data),
        "channels_65535": riff(fmt_chunk(channels=65_535, align=2), data),
        "channels_33": riff(fmt_chunk(channels=33), data),
        "rate_0": riff(fmt_chunk(rate=0), data),
        "rate_1": riff(fmt_chunk(rate=1), data),
        "rate_max": riff(fmt_chunk(rate=0xFFFFFFFF), data),
        "bits_0": riff(fmt_chunk(bits=0), data),
        "bits_1": riff(fmt_chunk(bits=1, align=1), data),
        "bits_65535": riff(fmt_chunk(bits=65_535), data),
        "align_odd": riff(fmt_chunk(channels=2, align=3), data),
        "align_max": riff(fmt_chunk(align=65_535), data),
        "m4a_overcounted": overcounted_m4a(),
        "m4a_overcounted_fragment": overcounted_fragment(),
        "m4a_cut": av_bytes(tone(440, 1), 16_000, "ipod", "aac")[:1000],
        "flac_header_only": soundfile_bytes(tone(440, 0.1), 16_000, "FLAC")[:42],
        "webm_header_only": streamed_webm(tone(440, 0.1, 48_000))[:120],
        "hls": b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/leak\n#EXT-X-ENDLIST\n",
        "hls_file": b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
        "concat": b"ffconcat version 1.0\nfile '/etc/hostname'\n",
        "sdp": b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 50040 RTP/AVP 0\r\n",
    }


def flac_that_declares(declared_s: float, sounding_s: float = 2.0, rate: int = 16_000) -> bytes:
    """Silence, in a file that declares another length in its STREAMINFO; 0 is "not known" there (RFC 9639, 8.2)."""
    file = bytearray(av_bytes(np.zeros(int(sounding_s * rate), np.float32), rate, "flac", "flac"))
    total = int(declared_s * rate)
    at = 8 + 13  # the 36 bits begin in the lower half of this byte
    file[at] = file[at] & 0xF0 | total >> 32
    file[at + 1 : at + 5] = (total & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(file)
