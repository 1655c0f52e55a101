"""What the commands take from the environment."""

import os
from collections.abc import Sequence

KEY_VARIABLE = "ANTIPHON_API_KEY"
SERVER_KEYS_VARIABLE, ADMIN_KEYS_VARIABLE = "ANTIPHON_API_KEYS", "ANTIPHON_ADMIN_KEYS"


def server_keys() -> Sequence[str]:
    """The keys that a server with this environment would ask for."""
    return _listed(SERVER_KEYS_VARIABLE)


def admin_keys() -> Sequence[str]:
    """Those that its management would ask for."""
    return _listed(ADMIN_KEYS_VARIABLE)


def take_keys(variable: str) -> list[str] | None:
    """A variable's keys, if it has some; it is gone afterwards: no engine's process inherits it."""
    keys = list(_listed(variable))
    os.environ.pop(variable, None)
    return keys or None


def own_key() -> str | None:
    """The key to send: one of its own, else the first of the server's."""
    return os.environ.get(KEY_VARIABLE, "").strip() or next(iter(server_keys()), None)


def _listed(variable: str) -> Sequence[str]:
    from antiphon.config.keys import listed_keys

    return listed_keys(os.environ.get(variable, ""))
