"""Where installed models live when nobody says otherwise."""

import os
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError

_ADVICE = "set ANTIPHON_MODELS_ROOT to an absolute path, or use --models-root"


def default_models_root() -> Path:
    """`$ANTIPHON_MODELS_ROOT`, else `$XDG_DATA_HOME/antiphon/models`, else `~/.local/share/antiphon/models`.

    The path is absolute; it need not exist. The XDG base directory specification says that a relative `$XDG_DATA_HOME`
    is to be ignored. Raises ConfigError if a home folder is needed and the user has none, as it is with users of
    containers that are only a number.
    """
    if named := os.environ.get("ANTIPHON_MODELS_ROOT"):
        try:
            return Path(named).expanduser().absolute()
        except RuntimeError as error:
            raise ConfigError(f"ANTIPHON_MODELS_ROOT: {named!r} has no home folder; {_ADVICE}") from error
    data_home = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not data_home.is_absolute():
        try:
            data_home = Path.home() / ".local" / "share"
        except RuntimeError as error:
            raise ConfigError(f"the models root is unknown: this user has no home folder; {_ADVICE}") from error
    return data_home / "antiphon" / "models"
