"""What a Wyoming listener can be told in the configuration, validated. It opens nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from antiphon.vocabulary.errors import ConfigError

DEFAULT_URI = "tcp://127.0.0.1:10300"
DEFAULT_MAX_AUDIO_BYTES = 64 * 1024 * 1024
"""The most audio of one request: 35 minutes at 16 kHz, 16 bits and one channel."""

DEFAULT_MAX_TEXT_CHARS = 100_000

_WANTED_URI = "wyoming: uri must be tcp://HOST:PORT or unix:///PATH"

_Id = Annotated[str, msgspec.Meta(min_length=1)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of one listener.

    A model that is None is the first of its kind in `GET /v1/models`. `api_key` is what it calls with where the server
    has keys. `live` has audio heard while it comes. None takes the server's own limit for `max_connections` and
    `idle_timeout_ms`; 0 is no limit for both.
    """

    uri: str = DEFAULT_URI
    asr_model: _Id | None = None
    tts_model: _Id | None = None
    api_key: _Id | None = None
    live: bool = True
    max_connections: _Count | None = None
    idle_timeout_ms: _Count | None = None
    max_audio_bytes: _Positive = DEFAULT_MAX_AUDIO_BYTES
    max_text_chars: _Positive = DEFAULT_MAX_TEXT_CHARS


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and a port, 0 being any free one."""

    host: str
    port: int


def read_options(given: Mapping[str, object]) -> Options:
    """Validate what the configuration says; raises ConfigError in one line."""
    try:
        return msgspec.convert(dict(given), Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"listeners: wyoming: {error}") from error


def address_in(uri: str) -> TcpAddress | str:
    """The address that an URI names: of TCP, or the path of a Unix socket; raises ConfigError."""
    try:
        parts = urlsplit(uri)
        match parts.scheme, parts.hostname, parts.port, parts.path:
            case "tcp", str(host), int(port), "" | "/":
                return TcpAddress(host, port)
            case "unix", None, None, path if path.startswith("/"):
                return path
    except ValueError as error:
        raise ConfigError(f"{_WANTED_URI}; found {uri!r}") from error
    raise ConfigError(f"{_WANTED_URI}; found {uri!r}")
