"""From a file and flags to a `ServerConfig`, or to one line that says what to mend."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from antiphon.config.files import read_object
from antiphon.config.keys import read_keys
from antiphon.config.schema import (
    ListenerConfig,
    LiveIngestConfig,
    ModelConfig,
    ServerConfig,
    folded,
    usable_cores,
)
from antiphon.config.surroundings import Surroundings
from antiphon.config.voices import PRESET, RequestDefaultsConfig, VoicePresetConfig
from antiphon.config.wording import shown, shown_path, shown_place, unknown_field
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import LiveLimits, Registration
from antiphon.vocabulary.states import Isolation

NO_FLAGS: Mapping[str, object] = MappingProxyType({})


def load_config(path: Path, *, parallel_jobs: bool, overrides: Mapping[str, object] = NO_FLAGS) -> ServerConfig:
    """Read and validate the configuration file at `path`; `overrides` are the flags, which win over it.

    Relative paths of the file start at the file's own folder: a link to the file is followed first, so that a file
    means the same under each of its names. Relative paths of a flag start at the working folder. A flag that is None
    was not given. Raises ConfigError: one line that names the file or the flag, the field, what was wanted and found.
    """
    flags = {name: _from_working_folder(name, value) for name, value in overrides.items() if value is not None}
    written = {name: value for name, value in read_object(path).items() if name != "$schema"}  # for editors alone
    data = {**written, **flags}
    return _validated(data, shown_path(path), Surroundings(Path(os.path.realpath(path)).parent, parallel_jobs), flags)


def build_config(
    data: Mapping[str, object],
    *,
    source: str,
    base: Path,
    parallel_jobs: bool,
    flags: Mapping[str, object] = NO_FLAGS,
) -> ServerConfig:
    """Validate a configuration that was not read from a file; `source` names it in errors, `base` starts its paths.

    `flags` win over `data`; errors name them as flags.
    """
    return _validated({**data, **flags}, source, Surroundings(base, parallel_jobs), flags)


def model_registration(
    data: Mapping[str, object],
    *,
    parallel_jobs: bool,
    device: str,
    lazy_load: bool,
    isolation: Isolation,
    live: LiveLimits,
) -> Registration:
    """Validate one model that a client registers; its relative paths start at the working folder.

    Raises InvalidRequest: the message says what was wanted, `param` names the field.
    """
    surroundings = Surroundings(Path.cwd(), parallel_jobs, tells_where=False)
    try:
        model = ModelConfig.model_validate(dict(data), context=surroundings)
    except ValidationError as error:
        fault = _first(error)
        place = _told(("models", 0, *fault["loc"]))[2:]
        message = f"{shown_place(place)}: {_explained({**fault, 'loc': ('models', 0, *place)})}"
        nested = place[0] in ("voice_presets", "default_request_options")
        raise InvalidRequest(message, param=".".join(map(str, place if nested else place[:1]))) from error
    cores = usable_cores()
    return model.to_registration(device=device, lazy_load=lazy_load, isolation=isolation, cores=cores, live=live)


_PATHS = frozenset(
    {
        "models_root",
        "voice_dir",
        "allowed_audio_roots",
        "journal",
        "tls_cert",
        "tls_key",
        "api_keys_file",
        "admin_keys_file",
    }
)
"""The fields whose flags begin at the working folder."""


def _from_working_folder(name: str, value: object) -> object:
    match name, value:
        case _, str() | Path() if name in _PATHS:
            return str(Path.cwd() / value)
        case "allowed_audio_roots", list() | tuple():
            return [_from_working_folder(name, root) for root in value]
        case _:
            return value


def _validated(
    data: Mapping[str, object], source: str, surroundings: Surroundings, flags: Mapping[str, object]
) -> ServerConfig:
    _refuse_shared_names(data.get("models"), source)

    def subject(place: tuple[int | str, ...]) -> str:
        return _flag(str(place[0])) if place[0] in flags else f"{source}: {shown_place(place)}"

    try:
        config = ServerConfig.model_validate(dict(data), context=surroundings)
    except ValidationError as error:
        fault = _first(error)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise ConfigError(f"{subject(_told(fault['loc']))}: {_explained(fault)}{more}") from error
    return _with_keys_of_files(config, subject)


def _with_keys_of_files(config: ServerConfig, subject: Callable[[tuple[int | str, ...]], str]) -> ServerConfig:
    files = {"api_keys": config.api_keys_file, "admin_keys": config.admin_keys_file}
    given = {"api_keys": config.api_keys, "admin_keys": config.admin_keys}
    for field, file in files.items():
        if file is not None:
            try:
                given[field] = (*given[field], *read_keys(Path(file)))
            except ValueError as error:
                raise ConfigError(f"{subject((f'{field}_file',))}: {error}") from error
    return config.model_copy(update=given)


def _told(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """As much of a fault's place as is told: below options, pydantic mixes names of types in."""
    match place:
        case ("models", int(), "voice_presets", *_):
            return place[:5]
        case ("models", int(), "live_ingest" | "default_request_options", *_):
            return place[:4]
        case _:
            return place[:3]


def _flag(field: str) -> str:
    return _OTHER_NAMES.get(field) or f"--{field.replace('_', '-')}"


_OTHER_NAMES = {
    "api_keys": "--api-key or ANTIPHON_API_KEYS",
    "admin_keys": "ANTIPHON_ADMIN_KEYS",
    "allowed_hosts": "--allowed-host",
}
"""What brings a field that has no flag of its name."""


def _first(error: ValidationError) -> ErrorDetails:
    """The fault to tell of. An unknown field goes first: a misspelt one also shows as missing, which is no help."""
    return min(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")


def _refuse_shared_names(models: object, source: str) -> None:
    """Refuse names that are equal, case aside; done before all else, so that the name is what the error says."""
    taken: dict[str, int] = {}
    for index, model in enumerate(models if isinstance(models, list | tuple) else ()):
        for place, name in _names(model):
            first = taken.setdefault(folded(name), index)
            if first != index:
                raise ConfigError(
                    f"{source}: models[{index}].{place}: wanted {_OF_ITS_OWN[place]}, case aside;"
                    f" found {shown(name)}, which models[{first}] has"
                )


_OF_ITS_OWN = {"id": "an id of its own", "aliases": "names that no other model has"}


def _names(model: object) -> Iterator[tuple[str, str]]:
    """The names of a model that is not validated yet, each with its field."""
    if not isinstance(model, Mapping):
        return
    aliases = model.get("aliases")
    for place, values in (("id", [model.get("id")]), ("aliases", aliases if isinstance(aliases, list) else [])):
        yield from ((place, value) for value in values if isinstance(value, str))


def _explained(fault: ErrorDetails) -> str:
    schema, wanted = _described(fault["loc"])
    is_secret = fault["loc"][0] in ("api_keys", "admin_keys")
    found = "" if is_secret else f"; found {shown(fault['input'])}"
    match fault["type"]:
        case "extra_forbidden":
            return unknown_field(str(fault["loc"][-1]), schema.model_fields)
        case "missing":
            return f"is missing; wanted {wanted}"
        case "value_error":
            return str(fault["ctx"]["error"])
        case _:
            return f"wanted {wanted}{found}"


def _described(place: tuple[int | str, ...]) -> tuple[type[BaseModel], str]:
    """The model whose field stands at `place`, and what that field wants."""
    match place:
        case ("models", int()):
            return ModelConfig, "an object that describes a model"
        case ("models", int(), "voice_presets", str()):
            return VoicePresetConfig, PRESET
        case ("models", int(), "voice_presets", str(), str(name)):
            schema: type[BaseModel] = VoicePresetConfig
        case ("models", int(), "default_request_options", str(name)):
            schema = RequestDefaultsConfig
        case (*_, "live_ingest", str(name)):
            schema = LiveIngestConfig
        case ("models", int(), str(name), *_):
            schema = ModelConfig
        case ("listeners", int()):
            return ListenerConfig, "an object that describes a listener"
        case ("listeners", int(), str(name), *_):
            schema = ListenerConfig
        case _:
            schema, name = ServerConfig, str(place[0])
    field = schema.model_fields.get(name)
    return schema, (field.description if field else None) or "something else"
