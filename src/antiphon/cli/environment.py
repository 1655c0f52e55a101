"""What the commands take from the environment."""

import os

KEY_VARIABLE = "ANTIPHON_API_KEY"
SERVER_KEYS_VARIABLE, ADMIN_KEYS_VARIABLE = "ANTIPHON_API_KEYS", "ANTIPHON_ADMIN_KEYS"


def server_keys() -> list[str] | None:
    """Return the API keys in the environment, None if the variable is not set. A list without keys is rejected later.

    An empty list must not pass for an absent one: the server would start without any key.
    """
    return _listed(SERVER_KEYS_VARIABLE)


def admin_keys() -> list[str] | None:
    """Return the admin keys in the environment, as `server_keys` does."""
    return _listed(ADMIN_KEYS_VARIABLE)


def take_keys(variable: str) -> list[str] | None:
    """Return a variable's keys as `server_keys` does, and remove it, so that no engine's process inherits it."""
    keys = _listed(variable)
    os.environ.pop(variable, None)
    return keys


def own_key() -> str | None:
    """The key to send: one of its own, else the first of the server's."""
    return os.environ.get(KEY_VARIABLE, "").strip() or next(iter(server_keys() or ()), None)


def _listed(variable: str) -> list[str] | None:
    from antiphon.config.keys import listed_keys

    text = os.environ.get(variable)
    return None if text is None else list(listed_keys(text))
