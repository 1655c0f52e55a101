"""The fields of voice presets and of a model's default options; whether a model can follow them is not known here.

Descriptions are as in `schema`.
"""

import json
from typing import Annotated, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from antiphon.config.paths import existing_path
from antiphon.config.surroundings import surroundings_of
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.terms import (
    ANY_LANGUAGE,
    MAX_SEED,
    MAX_SPEED,
    MIN_SPEED,
    LibraryVoice,
    Terms,
    VoiceFile,
    at_speed,
)

MAX_PRESETS = 1000
OPTIONS = "an object of JSON values with finite numbers"
PRESETS = f"an object of at most {MAX_PRESETS} presets by their names, of 1 to 200 printable characters"
PRESET = "an object that describes a voice preset"
_REFERENCE = 'the name of a voice of the library, or {"path": ...} of a recording'
_LANGUAGE = "a language such as 'en' or 'english', or 'auto'"
_SEED = "an integer from 0 to 2^63 - 1"

Options: TypeAlias = dict[str, JsonValue]


def finite(value: Options) -> Options:
    """The options, which are JSON; raises ValueError for NaN and infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except RecursionError as error:
        raise ValueError(f"wanted {OPTIONS}; found values that are nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"wanted {OPTIONS}; found NaN or infinity") from error
    return value


def _known_language(value: str | None) -> str | None:
    try:
        return None if value is None else base_language(value) or ANY_LANGUAGE
    except InvalidRequest as unknown:
        raise ValueError(unknown.message) from unknown


class ReferenceConfig(BaseModel):
    """Where the recording of a voice is: in the library by its name, or a file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str | None = Field(default=None, min_length=1, description=_REFERENCE)
    path: str | None = Field(default=None, description=_REFERENCE)

    @field_validator("path")
    @classmethod
    def _path_exists(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        surroundings = surroundings_of(info)
        return existing_path(surroundings.base, value, tells_where=surroundings.tells_where)

    def reference(self) -> LibraryVoice | VoiceFile:
        """The recording."""
        return VoiceFile(self.path) if self.path is not None else LibraryVoice(self.name or "")


def _named_or_described(value: object) -> object:
    """A bare text is a name; of an object only the path is taken, so that each can be said in one way."""
    match value:
        case str():
            return {"name": value}
        case {"path": str(), **others} if not others:
            return value
        case None:
            return None
        case _:
            raise ValueError(f"wanted {_REFERENCE}")


class VoicePresetConfig(BaseModel):
    """What a request says when it names this preset as its voice."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    voice: str | None = Field(default=None, min_length=1, description="the name of a voice")
    voice_ref: Annotated[ReferenceConfig | None, BeforeValidator(_named_or_described)] = Field(
        default=None, description=_REFERENCE
    )
    reference_text: str | None = Field(default=None, description="what is said in the recording")
    language: str | None = Field(default=None, description=_LANGUAGE)
    speed: float | None = Field(default=None, ge=MIN_SPEED, le=MAX_SPEED, description="a number from 0.25 to 4")
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED, description=_SEED)
    options: Options = Field(default={}, description=OPTIONS)

    @field_validator("language")
    @classmethod
    def _language_is_known(cls, value: str | None) -> str | None:
        return _known_language(value)

    @field_validator("options")
    @classmethod
    def _options_are_json(cls, value: Options) -> Options:
        return finite(value)

    def terms(self) -> Terms:
        """The preset as requests are completed with it."""
        return Terms(
            voice=self.voice,
            reference=None if self.voice_ref is None else self.voice_ref.reference(),
            reference_text=self.reference_text,
            language=self.language,
            seed=self.seed,
            named=at_speed(self.speed),
            options=dict(self.options),
        )


class RequestDefaultsConfig(BaseModel):
    """What requests are completed with last: a language, a seed, and every other member an option of the model."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    __pydantic_extra__: Options

    language: str | None = Field(default=None, description=_LANGUAGE)
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED, description=_SEED)

    @field_validator("language")
    @classmethod
    def _language_is_known(cls, value: str | None) -> str | None:
        return _known_language(value)

    @model_validator(mode="after")
    def _options_are_json(self) -> Self:
        finite(self.__pydantic_extra__)
        return self

    def terms(self) -> Terms:
        """The defaults as requests are completed with them."""
        return Terms(language=self.language, seed=self.seed, options=dict(self.__pydantic_extra__))


def preset_names(value: dict[str, VoicePresetConfig]) -> dict[str, VoicePresetConfig]:
    """The presets; raises ValueError for too many, and for a name that cannot be asked for."""
    if len(value) > MAX_PRESETS or not all(name.isprintable() and 1 <= len(name) <= 200 for name in value):
        raise ValueError(f"wanted {PRESETS}")
    return value
