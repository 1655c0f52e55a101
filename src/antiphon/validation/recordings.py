"""Recordings for the models that hear: spoken by an installed voice, or a user's own, and cut and joined as wav."""

import io
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.bench.errors import NotInstalledError
from antiphon.bench.lab import QUICK, Lab, configured
from antiphon.bench.load import Connection
from antiphon.bench.material import speech_request
from antiphon.validation.errors import ValidationError
from antiphon.validation.texts import TEXTS

_VOICE_FAMILY = "piper"
_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Clip:
    """One recording as an audio file, and what is said in it where that is known."""

    name: str
    wav: bytes
    text: str | None = None


def spoken_clips(models_root: Path) -> list[Clip]:
    """The English texts, spoken by an installed Piper voice; raises ValidationError where there is none."""
    with Lab(models_root, QUICK) as studio:
        try:
            voice = studio.installed(_VOICE_FAMILY)
        except NotInstalledError as error:
            raise ValidationError(
                f"{error.message}: install one to speak the recordings, or give some with --audio"
            ) from error
        server = studio.serve([configured(voice)], parallel=False)
        with Connection(server.url) as connection:
            return [
                Clip(name, connection.call(speech_request(voice.id, text)), text) for name, text in TEXTS["en"].items()
            ]


def own_clips(paths: Sequence[Path]) -> list[Clip]:
    """A user's recordings; the words of `a.wav` are looked for in `a.txt`. Raises ValidationError."""
    clips = []
    for path in paths:
        words = path.with_suffix(".txt")
        try:
            text = words.read_text("utf-8").strip() if words.is_file() else None
            clips.append(Clip(path.stem, path.read_bytes(), text))
        except (OSError, ValueError) as error:
            raise ValidationError(f"{path.name} cannot be read") from error
    return clips


def silence() -> bytes:
    """A second of digital silence."""
    return _written(bytes(2 * _RATE), _RATE)


def joined(wavs: Sequence[bytes]) -> bytes:
    """Recordings one after another, at the rate of the first. What is no plain 16-bit mono wav is left out."""
    parts = [part for part in map(_read, wavs) if part is not None]
    return _written(b"".join(frames for frames, _ in parts), parts[0][1]) if parts else silence()


def retuned(wav: bytes) -> bytes:
    """The same recording played a sixth faster, which makes its voice another; as it is, where it is no plain wav."""
    part = _read(wav)
    if part is None:
        return wav
    frames, rate = part
    kept = b"".join(frames[at : at + 12] for at in range(0, len(frames) - 13, 14))  # six samples of seven
    return _written(kept, rate)


def _read(wav: bytes) -> tuple[bytes, int] | None:
    try:
        with wave.open(io.BytesIO(wav)) as file:
            if (file.getnchannels(), file.getsampwidth()) != (1, 2):
                return None
            return file.readframes(file.getnframes()), file.getframerate()
    except (wave.Error, EOFError):
        return None


def _written(frames: bytes, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(frames)
    return out.getvalue()
