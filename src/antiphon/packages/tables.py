"""Typed reading of parsed TOML and JSON; it knows no field's meaning, only whether it is there and of its type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from antiphon.vocabulary.errors import PackageError


@dataclass(frozen=True, slots=True)
class Table:
    """One object of a document and the name by which a fault in it is reported. Raises PackageError for every fault."""

    name: str
    fields: Mapping[str, object]

    @classmethod
    def of(cls, name: str, value: object) -> Self:
        """Take a parsed value that must be an object with text keys."""
        if not isinstance(value, Mapping):
            raise PackageError(f"{name} must be an object")
        return cls(name, {str(key): field for key, field in value.items()})

    def text(self, key: str) -> str:
        """A field that holds text, never empty."""
        value = self._required(key)
        if not isinstance(value, str) or not value:
            raise PackageError(f"{self.name}: {key} must be a text")
        return value

    def size(self, key: str) -> int:
        """A field that holds a count of bytes, zero or more."""
        value = self._required(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise PackageError(f"{self.name}: {key} must be a whole number of bytes")
        return value

    def flag(self, key: str) -> bool:
        """A field that holds true or false."""
        value = self._required(key)
        if not isinstance(value, bool):
            raise PackageError(f"{self.name}: {key} must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A field that holds a list of texts, at least one."""
        values = self._list(key)
        return tuple(Table(self.name, {key: value}).text(key) for value in values)

    def tables(self, key: str) -> tuple["Table", ...]:
        """A field that holds a list of objects, at least one."""
        return tuple(Table.of(f"{self.name}: {key} {index}", value) for index, value in enumerate(self._list(key), 1))

    def _list(self, key: str) -> Sequence[object]:
        values = self._required(key)
        if not isinstance(values, list) or not values:
            raise PackageError(f"{self.name}: {key} must be a list of at least one")
        return values

    def _required(self, key: str) -> object:
        if key not in self.fields:
            raise PackageError(f"{self.name}: {key} is missing")
        return self.fields[key]
