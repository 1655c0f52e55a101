"""Finds adapters by the name of their family, through entry points, so that only what is used is imported."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from antiphon.ports.adapter import Adapter
from antiphon.vocabulary.errors import ConfigError

GROUP = "antiphon.adapters"


class AdapterFinder:
    """Adapters by family. Each of `targets` names one more as "module:Class", and wins over an installed one."""

    def __init__(self, targets: Iterable[str] = ()) -> None:
        self._found: dict[str, Adapter] = {}
        self._targets: dict[str, str] = {}
        for target in targets:
            adapter = make_adapter(target)
            self._found[adapter.family] = adapter
            self._targets[adapter.family] = target

    def find(self, family: str) -> Adapter:
        """Make the family's adapter, once; raises ConfigError for one that is unknown or cannot be imported."""
        if family not in self._found:
            self._found[family] = make_adapter(self.target(family))
        return self._found[family]

    def target(self, family: str) -> str:
        """Where the family's adapter is, as "module:Class"; raises ConfigError for one that is unknown."""
        target = self._targets.get(family) or _installed().get(family)
        if target is None:
            known = ", ".join(sorted({*_installed(), *self._targets}))
            raise ConfigError(f"there is no model family {family!r}; installed are {known}")
        return target


def make_adapter(target: str) -> Adapter:
    """Import and make one adapter, "module:Class"; raises ConfigError."""
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
    from importlib.metadata import entry_points  # slow to import, and a worker is told its adapter

    return {point.name: point.value for point in entry_points(group=GROUP)}
