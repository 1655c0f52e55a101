"""What the commands that serve nobody take from the environment."""

import os

KEY_VARIABLE, SERVER_KEYS_VARIABLE = "ANTIPHON_API_KEY", "ANTIPHON_API_KEYS"


def server_keys() -> tuple[str, ...]:
    """The keys that a server with this environment would ask for."""
    keys = (key.strip() for key in os.environ.get(SERVER_KEYS_VARIABLE, "").split(","))
    return tuple(key for key in keys if key)


def own_key() -> str | None:
    """The key to send: one of its own, else the first of the server's."""
    return os.environ.get(KEY_VARIABLE, "").strip() or next(iter(server_keys()), None)
