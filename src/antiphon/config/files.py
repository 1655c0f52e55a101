"""Configuration files as plain objects: JSON or TOML by the name's ending; what the fields mean is not known here."""

import codecs
import json
import re
import tomllib
from pathlib import Path

from antiphon.config.json_objects import load_json
from antiphon.config.wording import shown, shown_path
from antiphon.vocabulary.errors import ConfigError

MAX_FILE_BYTES = 4 * 1024 * 1024
"""No configuration is this large; a device or an audio file named by mistake is not read to its end."""


def read_object(path: Path) -> dict[str, object]:
    """Read the object that a `.json` or `.toml` file holds; raises ConfigError, one line that names the file."""
    source = shown_path(path)
    match path.suffix.lower():
        case ".json":
            return _parse_json(_read_text(path, source), source)
        case ".toml":
            return _parse_toml(_read_text(path, source), source)
        case _:
            raise ConfigError(f"{source}: wanted a file name that ends in .json or .toml")


def _read_text(path: Path, source: str) -> str:
    try:
        # A pipe is fine here, as of `--config <(...)` in a shell; the user who named it waits for it.
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL in the name, or a name that the locale cannot encode
        raise ConfigError(f"{source}: cannot be read: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{source}: wanted a configuration of at most {MAX_FILE_BYTES} bytes")
    if data.startswith(codecs.BOM_UTF8):
        raise ConfigError(f"{source}: starts with a byte order mark; save it as UTF-8 without one")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: is not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise ConfigError(f"{source}: is empty; wanted a configuration")
    return text


def _parse_json(text: str, source: str) -> dict[str, object]:
    try:
        # NaN and Infinity pass here, so that the field that holds one is named when it is validated.
        value = load_json(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{source}: is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{source}: is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"{source}: is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{source}: wanted an object at the top; found {shown(value)}")
    return value


def _parse_toml(text: str, source: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{source}: is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"{source}: is not valid TOML: {error}{_toml_line(text, error)}") from error


_TOML_NAME = re.compile(r"\s*(?P<name>[A-Za-z0-9_.-]+)\s*=|\s*(?P<table>\[[A-Za-z0-9_.\[\] -]+\])\s*")


def _toml_line(text: str, error: BaseException) -> str:
    """Quote the name in the line at fault: tomllib tells where a duplicate stands, but not what it is.

    The value is not quoted: it may be a secret.
    """
    _, found, place = str(error).rpartition("at line ")
    number = place.partition(",")[0]
    lines = text.split("\n")
    if not found or not number.isdecimal() or not 1 <= int(number) <= len(lines):
        return ""
    name = _TOML_NAME.match(lines[int(number) - 1])
    return f": {shown(name['name'] or name['table'])}" if name else ""
