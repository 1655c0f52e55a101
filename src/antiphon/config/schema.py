"""The fields of a configuration, their defaults and ranges; where the values come from is not known here.

Each field's description ends the sentence "wanted ..." of the error that refuses a value.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from antiphon.config.keys import fits_a_head
from antiphon.config.paths import absolute_path, existing_path, folder_path
from antiphon.config.surroundings import surroundings_of
from antiphon.config.voices import (
    OPTIONS,
    PRESETS,
    Options,
    RequestDefaultsConfig,
    VoicePresetConfig,
    finite,
    preset_names,
)
from antiphon.config.wording import shown
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.spec import MAX_SLOTS, LiveLimits, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task
from antiphon.vocabulary.terms import NO_TERMS

MAX_ID_LENGTH = 200
MAX_ALIASES = 64
MAX_THREADS = 1024
AUTO = "auto"
_THREADS = f"an integer from 1 to {MAX_THREADS}, or {AUTO}"
_ID = f"1 to {MAX_ID_LENGTH} printable characters, no space at either end, no empty, '.' or '..' part between slashes"
_ALIASES = "a list of names like ids, each once and none the model's own"
_PRESET_NAME = "the name of one of the voice_presets"
_LIVE = "an object with limits of live audio"
_KEYS = "a list of 1 or more API keys, each of 1 or more visible ASCII characters"
_KEYS_FILE = "the path of a file with one key a line"
_ORIGINS = "'', '*', or origins like https://example.org with commas between them"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/,*]+")
_HOSTS = "a list of host names, without ports"
_HOST = re.compile(r"[a-z0-9._-]+")
_LARGEST = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""

_Positive = Annotated[int, Field(ge=1, le=_LARGEST, description="an integer, 1 or more")]
_Milliseconds = Annotated[int, Field(ge=0, le=_LARGEST, description="whole milliseconds, 0 or more (0 = no bound)")]
_LIMIT = "whole milliseconds, 0 or more (0 = no limit)"
_Limit = Annotated[int, Field(ge=0, le=_LARGEST, description=_LIMIT)]
_OwnLimit = Annotated[int | None, Field(ge=0, le=_LARGEST, description=_LIMIT)]
_Count = Annotated[int, Field(ge=0, le=_LARGEST, description="an integer, 0 or more (0 = off)")]
_Switch = Annotated[bool, Field(description="true or false")]
_Keys = Annotated[tuple[str, ...], Field(strict=False, repr=False, description=_KEYS)]
_Options = Annotated[Options, Field(description=OPTIONS)]


class LiveIngestConfig(BaseModel):
    """The limits of live audio; what a model leaves out is the server's."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    idle_timeout_ms: _OwnLimit = None
    total_timeout_ms: _OwnLimit = None
    max_body_bytes: int | None = Field(default=None, ge=0, le=_LARGEST, description="bytes, 0 or more (0 = no limit)")
    max_chunk_bytes: int | None = Field(default=None, ge=1, le=_LARGEST, description="bytes, 1 or more")
    send_timeout_ms: _OwnLimit = None

    def limits(self, defaults: LiveLimits) -> LiveLimits:
        """The limits as the runtime has them, completed with these."""
        given = self.model_dump(exclude_none=True)
        in_ms = [name for name in given if name.endswith("_ms")]
        seconds = {f"{name.removesuffix('_ms')}_s": given.pop(name) / 1000 for name in in_ms}
        return replace(defaults, **given, **seconds)


class ModelConfig(BaseModel):
    """One model as a configuration describes it.

    Units: `busy_timeout_ms` milliseconds, None takes the server's, 0 waits without bound; `threads` is intra-op threads
    of one call, "auto" all cores for one that is alone and one for each of several. `path` is absolute once validated.
    An optional field may be null, which is the same as leaving it out; `slots` may not.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: str = Field(description=_ID)
    family: str = Field(min_length=1, description="the name of an installed engine family")
    path: str = Field(description="the path of an existing file or folder")
    task: Task = Field(strict=False, description=f"one of {', '.join(Task)}")
    mode: Mode = Field(default=Mode.OFFLINE, strict=False, description=f"one of {', '.join(Mode)}")
    slots: int = Field(default=1, ge=1, le=MAX_SLOTS, description=f"an integer from 1 to {MAX_SLOTS}")
    lazy: bool | None = Field(default=None, description="true or false")
    pinned: bool = Field(default=False, description="true or false")
    aliases: tuple[str, ...] = Field(default=(), strict=False, max_length=MAX_ALIASES, description=_ALIASES)
    busy_timeout_ms: int | None = Field(
        default=None, ge=0, le=_LARGEST, description="whole milliseconds, 0 or more (0 = no bound)"
    )
    run_timeout_ms: _OwnLimit = None
    cancel_timeout_ms: _OwnLimit = None
    load_timeout_ms: _OwnLimit = None
    teardown_timeout_ms: _OwnLimit = None
    threads: int | Literal["auto"] | None = Field(default=None, description=_THREADS)
    isolation: Isolation | None = Field(default=None, strict=False, description=f"one of {', '.join(Isolation)}")
    load_options: _Options = {}
    session_options: _Options = {}
    voice_presets: dict[str, VoicePresetConfig] = Field(default={}, description=PRESETS)
    default_voice_preset: str | None = Field(default=None, description=_PRESET_NAME)
    default_request_options: RequestDefaultsConfig | None = Field(default=None, description=OPTIONS)
    live_ingest: LiveIngestConfig | None = Field(default=None, description=_LIVE)

    @field_validator("slots", mode="before")
    @classmethod
    def _slots_need_the_parallel_runtime(cls, value: object, info: ValidationInfo) -> object:
        if not surroundings_of(info).parallel_jobs:  # rule.default_rejects_slots: 1 and null included
            raise ValueError("slots needs --parallel-jobs; leave it out, or start with --parallel-jobs")
        return value

    @field_validator("id")
    @classmethod
    def _id_fits_a_url_a_form_and_json(cls, value: str) -> str:
        if not _is_id(value):
            raise ValueError(f"wanted {_ID}; found {shown(value)}")
        return value

    @field_validator("aliases")
    @classmethod
    def _aliases_are_ids_of_their_own(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        taken = {folded(str(info.data.get("id", "")))}
        for alias in value:
            if not _is_id(alias) or folded(alias) in taken:
                raise ValueError(f"wanted {_ALIASES}; found {shown(alias)}")
            taken.add(folded(alias))
        return value

    @field_validator("threads", mode="before")
    @classmethod
    def _threads_are_a_number_or_auto(cls, value: object) -> object:
        is_count = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_THREADS
        if value is None or value == AUTO or is_count:
            return value
        raise ValueError(f"wanted {_THREADS}; found {shown(value)}")

    @field_validator("path")
    @classmethod
    def _path_exists(cls, value: str, info: ValidationInfo) -> str:
        surroundings = surroundings_of(info)
        return existing_path(surroundings.base, value, tells_where=surroundings.tells_where)

    @field_validator("load_options", "session_options")
    @classmethod
    def _options_are_json(cls, value: Options) -> Options:
        return finite(value)

    @field_validator("voice_presets")
    @classmethod
    def _presets_have_names(cls, value: dict[str, VoicePresetConfig]) -> dict[str, VoicePresetConfig]:
        return preset_names(value)

    @field_validator("default_voice_preset")
    @classmethod
    def _default_is_a_preset(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value not in info.data.get("voice_presets", {value}):
            raise ValueError(f"wanted {_PRESET_NAME}; found {shown(value)}")
        return value

    def to_registration(
        self, *, device: str, lazy_load: bool, isolation: Isolation, cores: int, live: LiveLimits
    ) -> Registration:
        """Complete this model with the server's defaults; `threads` left out is `cores` shared out among the slots."""
        auto_threads = self.threads == AUTO
        threads = self.threads if isinstance(self.threads, int) else max(1, cores // self.slots)
        spec = ModelSpec(
            id=self.id,
            family=self.family,
            path=self.path,
            task=self.task,
            mode=self.mode,
            slots=self.slots,
            device=device,
            threads=cores if auto_threads else threads,
            auto_threads=auto_threads,
            load_options=dict(self.load_options),
            session_options=dict(self.session_options),
            isolation=self.isolation or isolation,
        )
        defaults = self.default_request_options
        return Registration(
            spec,
            lazy_load if self.lazy is None else self.lazy,
            self.busy_timeout_ms,
            self.pinned,
            self.run_timeout_ms,
            self.load_timeout_ms,
            self.teardown_timeout_ms,
            live if self.live_ingest is None else self.live_ingest.limits(live),
            self.aliases,
            voice_presets={name: preset.terms() for name, preset in self.voice_presets.items()},
            default_voice_preset=self.default_voice_preset,
            default_request_options=NO_TERMS if defaults is None else defaults.terms(),
            cancel_timeout_ms=self.cancel_timeout_ms,
            isolation_asked=self.isolation is not None,
            threads_asked=self.threads is not None,
        )


class ListenerConfig(BaseModel):
    """One more listener beside the default one; every other field is an option that the listener itself checks."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    kind: str = Field(min_length=1, description="the name of an installed listener")
    path: str | None = Field(default=None, description="the path of a file")

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else absolute_path(surroundings_of(info).base, value)

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        """Not its options, among which may be a key."""
        return [("kind", self.kind), ("path", self.path)]

    def options(self) -> dict[str, object]:
        """What the listener is made with: everything but its kind."""
        return self.model_dump(exclude={"kind"}, exclude_none=True)


class ServerConfig(BaseModel):
    """A whole configuration, validated; its paths are absolute and its model ids unique.

    Units: last in each name. `port` 0 takes any free port; `busy_timeout_ms` 0 waits without bound. Once loaded,
    `api_keys` and `admin_keys` include those of their files.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    host: str = Field(default="127.0.0.1", pattern=r"^[!-~]+$", description="a host name or an address")
    port: int = Field(default=8080, ge=0, le=65535, description="an integer from 0 to 65535 (0 = any free port)")
    device: Literal["cpu", "cuda", "vulkan"] = Field(default="cpu", description="one of cpu, cuda, vulkan")
    isolation: Isolation = Field(default=Isolation.PROCESS, strict=False, description=f"one of {', '.join(Isolation)}")
    lazy_load: _Switch = False
    busy_timeout_ms: _Milliseconds = 300_000
    run_timeout_ms: _Limit = 0
    cancel_timeout_ms: _Limit = 60_000
    load_timeout_ms: _Limit = 0
    teardown_timeout_ms: _Limit = 0
    slow_reader_timeout_ms: _Limit = 30_000
    max_text_chars: _Positive = 100_000
    speech_format: AudioFormat = Field(
        default=AudioFormat.WAV, strict=False, description=f"one of {', '.join(AudioFormat)}"
    )
    max_audio_seconds: _Positive = 14_400
    max_request_body_bytes: _Positive = 512 * 1024 * 1024
    max_json_body_bytes: _Positive = 32 * 1024 * 1024
    max_pending_body_mb: _Positive = 1024
    max_pending_audio_mb: _Positive = 1024
    max_loaded_models: _Count = 0
    idle_unload_ms: _Count = 0
    min_free_memory_mb: _Count = 0
    residency_wait_ms: _Count = 0
    ui_management: _Switch = False
    models_root: str | None = Field(default=None, description="the path of a folder")
    voice_dir: str | None = Field(default=None, description="the path of an existing folder")
    allowed_audio_roots: tuple[str, ...] = Field(default=(), strict=False, description="a list of existing folders")
    api_keys: _Keys = ()
    api_keys_file: str | None = Field(default=None, description=_KEYS_FILE)
    admin_keys: _Keys = ()
    admin_keys_file: str | None = Field(default=None, description=_KEYS_FILE)
    insecure: _Switch = False
    allowed_hosts: tuple[str, ...] = Field(default=(), strict=False, description=_HOSTS)
    cors_origins: str = Field(default="", description=_ORIGINS)
    tls_cert: str | None = Field(default=None, description="the path of a certificate in PEM form")
    tls_key: str | None = Field(
        default=None, validate_default=True, description="the path of a private key in PEM form"
    )
    header_timeout_ms: _Milliseconds = 20_000
    body_timeout_ms: _Milliseconds = 30_000
    min_body_bytes_per_s: _Count = 4096
    send_timeout_ms: _Milliseconds = 30_000
    keep_alive_ms: _Milliseconds = 75_000
    max_connections: _Count = 1000
    drain_timeout_ms: _Milliseconds = 30_000
    journal: str | None = Field(default=None, description="the path of a file in an existing folder")
    journal_max_mb: _Positive = 64
    live_ingest: LiveIngestConfig | None = Field(default=None, description=_LIVE)
    listeners: tuple[ListenerConfig, ...] = Field(default=(), strict=False, description="a list of listeners")
    models: tuple[ModelConfig, ...] = Field(default=(), strict=False, description="a list of models")

    @field_validator("models_root")
    @classmethod
    def _models_root_is_or_can_become_a_folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else folder_path(surroundings_of(info).base, value, must_exist=False)

    @field_validator("voice_dir")
    @classmethod
    def _voice_dir_is_a_folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else folder_path(surroundings_of(info).base, value, must_exist=True)

    @field_validator("journal")
    @classmethod
    def _journal_has_a_folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        path = Path(absolute_path(surroundings_of(info).base, value))
        folder_path(path.parent, ".", must_exist=True)
        return str(path)

    @field_validator("allowed_audio_roots")
    @classmethod
    def _audio_roots_are_folders(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(folder_path(surroundings_of(info).base, root, must_exist=True) for root in value)

    @field_validator("api_keys_file", "admin_keys_file")
    @classmethod
    def _keys_files_exist(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else existing_path(surroundings_of(info).base, value)

    @field_validator("api_keys", "admin_keys")
    @classmethod
    def _keys_fit_a_header(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # Anyone who sets a list wants keys to be required: one that turned out empty must not start an open server.
        if not value or not all(fits_a_head(key) for key in value):
            raise ValueError(f"wanted {_KEYS}")  # it is never said what was found
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts_are_as_browsers_send_them(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.lower() for name in value)
        if unfit := [name for name in names if not _HOST.fullmatch(name)]:
            raise ValueError(f"wanted {_HOSTS}; found {shown(unfit[0])}")
        return names

    @field_validator("cors_origins")
    @classmethod
    def _origins_are_as_browsers_send_them(cls, value: str) -> str:
        if value.strip() != "*" and not all(_ORIGIN.fullmatch(origin) for origin in _listed(value)):
            raise ValueError(f"wanted {_ORIGINS}; found {shown(value)}")
        return value

    @field_validator("tls_cert", "tls_key")
    @classmethod
    def _tls_files_exist(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else existing_path(surroundings_of(info).base, value)

    @field_validator("tls_key")
    @classmethod
    def _tls_needs_both(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "tls_cert" in info.data and (value is None) != (info.data["tls_cert"] is None):
            raise ValueError(
                f"tls_cert and tls_key go together; found only {'tls_cert' if value is None else 'tls_key'}"
            )
        return value

    def origins(self) -> tuple[str, ...]:
        """The web origins whose pages may call, in lower case as browsers send them; ("*",) is every one."""
        return _listed(self.cors_origins)

    def registrations(self) -> tuple[Registration, ...]:
        """The models, each completed with this server's defaults and this machine's cores."""
        cores, live = usable_cores(), self.live_limits()
        return tuple(
            model.to_registration(
                device=self.device, lazy_load=self.lazy_load, isolation=self.isolation, cores=cores, live=live
            )
            for model in self.models
        )

    def live_limits(self) -> LiveLimits:
        """The limits of live audio for models that have none of their own."""
        return LiveLimits() if self.live_ingest is None else self.live_ingest.limits(LiveLimits())


def folded(name: str) -> str:
    """An id or alias as it is compared with others: case aside, however its signs are composed."""
    return unicodedata.normalize("NFC", name).casefold()


def usable_cores() -> int:
    """How many cores this process may run on: a pinned process or a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0))


def _is_id(value: str) -> bool:
    # Clients collapse "." and ".." parts of a URL, and proxies collapse empty ones: such an id is unreachable.
    parts_survive = not {"", ".", ".."}.intersection(value.split("/"))
    return value.isprintable() and value == value.strip() and len(value) <= MAX_ID_LENGTH and parts_survive


def _listed(origins: str) -> tuple[str, ...]:
    return tuple(origin.strip() for origin in origins.split(",") if origin.strip())
