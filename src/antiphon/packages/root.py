"""Where installed models live when nobody says otherwise."""

import os
from pathlib import Path


def default_models_root() -> Path:
    """`$ANTIPHON_MODELS_ROOT`, else `$XDG_DATA_HOME/antiphon/models`, else `~/.local/share/antiphon/models`.

    The path is absolute; it need not exist. The XDG base directory specification says that a relative `$XDG_DATA_HOME`
    is to be ignored.
    """
    if named := os.environ.get("ANTIPHON_MODELS_ROOT"):
        return Path(named).expanduser().absolute()
    data_home = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not data_home.is_absolute():
        data_home = Path.home() / ".local" / "share"
    return data_home / "antiphon" / "models"
