"""JSON whose objects have each key once: Python's parser, like most, silently keeps the last of two equal keys."""

import json
from collections.abc import Iterator
from typing import TypeAlias

Place: TypeAlias = tuple[int | str, ...]


class DuplicateKey(ValueError):
    """An object has a key twice; `place` is the path to the second one, of names and positions."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"the key {place[-1]!r} appears more than once in an object")
        self.place = place


class _Pairs(list[tuple[str, object]]):
    """The members of an object, as they stand."""


def load_json(text: str | bytes) -> object:
    """Parse JSON; raises DuplicateKey, and what `json.loads` raises."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except _DuplicateFound:
        # The hook sees an object without knowing where it is, so the place is looked for once it matters.
        raise DuplicateKey(next(_duplicates(json.loads(text, object_pairs_hook=_Pairs)))) from None


class _DuplicateFound(Exception):
    """Ends a parse."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise _DuplicateFound
    return built


def _duplicates(value: object, place: Place = ()) -> Iterator[Place]:
    """The paths to keys that appear again in their object, outermost object first."""
    match value:
        case _Pairs():
            seen: set[str] = set()
            for key, _ in value:
                if key in seen:
                    yield (*place, key)
                seen.add(key)
            for key, item in value:
                yield from _duplicates(item, (*place, key))
        case list():
            for index, item in enumerate(value):
                yield from _duplicates(item, (*place, index))
        case _:
            pass
