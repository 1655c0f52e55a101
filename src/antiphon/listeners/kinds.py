"""Finds a kind of listener by its name, through entry points, and makes one; what it does with its options it knows."""

from collections.abc import Mapping
from importlib.metadata import entry_points

from antiphon.ports.listener import HouseRules, Listener, Unguarded
from antiphon.vocabulary.errors import AntiphonError, ConfigError

GROUP = "antiphon.listeners"

_NO_RULES = HouseRules()


def make_listener(kind: str, options: Mapping[str, object], rules: HouseRules = _NO_RULES) -> Listener:
    """Make a listener of this kind, and tell it the server's rules if it is an unguarded one.

    Raises ConfigError for one that is unknown, that cannot be made of `options`, or that cannot keep the rules.
    """
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if kind not in installed:
        raise ConfigError(f"there is no listener of the kind {kind!r}; installed are {', '.join(sorted(installed))}")
    point = installed[kind]
    try:
        listener: object = point.load()(options)
    except AntiphonError:
        raise
    except Exception as error:  # whatever somebody else's listener raises: the start ends in one line
        raise ConfigError(f"the listener {point.value!r} cannot be made: {error}") from error
    if not isinstance(listener, Listener):
        raise ConfigError(f"{point.value!r} is no listener: it lacks open, serve or close")
    if isinstance(listener, Unguarded):
        listener.heed(rules)
    return listener
