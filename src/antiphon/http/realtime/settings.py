"""What a transcription session is set to: as clients ask for it, in either version of the protocol, and as it is told.

Source of the shapes: https://platform.openai.com/docs/api-reference/realtime-client-events/session/update, and the
types of the openai client (`types/realtime`, `types/beta/realtime`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from antiphon.http.realtime.sound import PCM, WIRES, Wire
from antiphon.http.schemas import Body
from antiphon.service.transcription import TranscriptionOrder
from antiphon.vocabulary.errors import InvalidRequest

SESSION_OBJECT = "realtime.transcription_session"

MAX_SILENCE_MS = 3_600_000
"""No pause is this long; a model's own bound is far below."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How audio is heard. `detects_turns` is false where the client itself says when a turn is over.

    `silence_ms` is the pause that ends a turn; None leaves it to the model.
    """

    model: str | None = None
    language: str | None = None
    prompt: str | None = None
    wire: Wire = PCM
    detects_turns: bool = True
    silence_ms: int | None = None

    def order(self) -> TranscriptionOrder:
        """What is asked of the service; raises InvalidRequest where nobody has said of which model."""
        if not self.model:
            raise InvalidRequest(
                "no model is set; session.update names it, or the query of the connection does",
                param="session.audio.input.transcription.model",
            )
        return TranscriptionOrder(
            model=self.model, language=self.language, prompt=self.prompt, silence_ms=self.silence_ms
        )


class Transcription(Body):
    """Which model hears, and what it is told beforehand; what is left out stays as it is."""

    model: str | None = None
    language: str | None = None
    prompt: str | None = None


class TurnDetection(Body):
    """Only the model itself finds turns; of the numbers that clients may add it knows one."""

    type: Literal["server_vad"]
    silence_duration_ms: int | None = Field(default=None, ge=0, le=MAX_SILENCE_MS)


class AudioForm(Body):
    """The form of the audio that comes."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"] = "audio/pcm"
    rate: Literal[24_000] | None = None


class AudioInput(Body):
    """What is set of the input."""

    format: AudioForm | None = None
    transcription: Transcription | None = None
    turn_detection: TurnDetection | None = None


class Audio(Body):
    """The only part of the audio that a transcription has."""

    input: AudioInput = AudioInput()


class SessionUpdate(Body):
    """`session` of `session.update`."""

    type: Literal["transcription"]
    audio: Audio = Audio()


class OldSessionUpdate(Body):
    """`session` of `transcription_session.update`, the older protocol's."""

    input_audio_format: Literal["pcm16", "g711_ulaw", "g711_alaw"] = "pcm16"
    input_audio_transcription: Transcription | None = None
    turn_detection: TurnDetection | None = None


def updated(settings: Settings, update: SessionUpdate) -> Settings:
    """The settings with what the update says; what it leaves out stays as it is, and null turns it off."""
    asked = update.audio.input
    if "format" in asked.model_fields_set:
        label = (asked.format or AudioForm()).type
        settings = replace(settings, wire=next(it for it in WIRES if it.label == label))
    if "transcription" in asked.model_fields_set:
        settings = _transcribing(settings, asked.transcription)
    if "turn_detection" in asked.model_fields_set:
        settings = _detecting(settings, asked.turn_detection)
    return settings


def updated_as_of_old(settings: Settings, update: OldSessionUpdate) -> Settings:
    """The same for the older protocol."""
    if "input_audio_format" in update.model_fields_set:
        label = update.input_audio_format
        settings = replace(settings, wire=next(it for it in WIRES if it.old_label == label))
    if "input_audio_transcription" in update.model_fields_set:
        settings = _transcribing(settings, update.input_audio_transcription)
    if "turn_detection" in update.model_fields_set:
        settings = _detecting(settings, update.turn_detection)
    return settings


def session_json(session_id: str, settings: Settings) -> Mapping[str, object]:
    """The session as `session.created` and `session.updated` tell it."""
    rate = {"rate": settings.wire.raw.rate} if settings.wire is PCM else {}
    heard = {
        "format": {"type": settings.wire.label, **rate},
        "noise_reduction": None,
        "transcription": _transcription_json(settings),
        "turn_detection": _turn_detection_json(settings),
    }
    return {
        "id": session_id,
        "object": SESSION_OBJECT,
        "type": "transcription",
        "audio": {"input": heard},
        "include": None,
    }


def old_session_json(session_id: str, settings: Settings) -> Mapping[str, object]:
    """The session as the older protocol tells it."""
    return {
        "id": session_id,
        "object": SESSION_OBJECT,
        "input_audio_format": settings.wire.old_label,
        "input_audio_transcription": _transcription_json(settings),
        "turn_detection": _turn_detection_json(settings),
        "modalities": ["text"],
        "client_secret": None,
    }


def _transcribing(settings: Settings, asked: Transcription | None) -> Settings:
    if asked is None:
        return replace(settings, model=None, language=None, prompt=None)
    given = {name: getattr(asked, name) for name in ("model", "language", "prompt") if name in asked.model_fields_set}
    return replace(settings, **given)


def _detecting(settings: Settings, asked: TurnDetection | None) -> Settings:
    if asked is None:
        return replace(settings, detects_turns=False, silence_ms=None)
    return replace(settings, detects_turns=True, silence_ms=asked.silence_duration_ms)


def _transcription_json(settings: Settings) -> Mapping[str, object] | None:
    if settings.model is None:
        return None
    return {"model": settings.model, "language": settings.language, "prompt": settings.prompt or ""}


def _turn_detection_json(settings: Settings) -> Mapping[str, object] | None:
    if not settings.detects_turns:
        return None
    silence = {} if settings.silence_ms is None else {"silence_duration_ms": settings.silence_ms}
    return {"type": "server_vad", **silence}
