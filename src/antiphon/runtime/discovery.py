"""Finds adapters by the name of their family, through entry points, so that only what is used is imported."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from antiphon.ports.adapter import Adapter
from antiphon.vocabulary.errors import ConfigError

GROUP = "antiphon.adapters"


class AdapterFinder:
    """Adapters by family. Each of `targets` names one more as "module:Class", and wins over an installed one."""

    def __init__(self, targets: Iterable[str] = ()) -> None:
        adapters = [_make(target) for target in targets]
        self._found = {adapter.family: adapter for adapter in adapters}

    def find(self, family: str) -> Adapter:
        """Make the family's adapter, once; raises ConfigError for one that is unknown or cannot be imported."""
        if family not in self._found:
            installed = _installed()
            if family not in installed:
                known = ", ".join(sorted({*installed, *self._found}))
                raise ConfigError(f"there is no model family {family!r}; installed are {known}")
            self._found[family] = _make(installed[family])
        return self._found[family]


def _make(target: str) -> Adapter:
    module, _, name = target.partition(":")
    try:
        adapter = getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the adapter {target!r} cannot be imported: {error}") from error
    if not isinstance(adapter, Adapter):
        raise ConfigError(f"{target!r} is no adapter: it lacks family, inspect or load")
    return adapter


@cache
def _installed() -> Mapping[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}
