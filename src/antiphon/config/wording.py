"""How the faults of a configuration are worded: one printable line; it decides nothing."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

_LONGEST = 80


def shown(value: object) -> str:
    """Show a value that was found, as the file spells its kind, short and on one line."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case int() if value.bit_length() > 128:  # Python refuses to write out thousands of digits
            return f"an integer of {value.bit_length()} bits"
        case str():
            text = repr(value)
        case _:
            text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def shown_path(path: Path) -> str:
    """Show a file's path as it was given; one that would break the line or the terminal is quoted."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def shown_place(place: Iterable[str | int]) -> str:
    """Show where a field stands: `models[1].slots`."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}"
        else:
            text += f"[{shown(part)}]"
    return text.removeprefix(".")


def unknown_field(name: str, known: Iterable[str]) -> str:
    """Say that a field is unknown, and what may have been meant."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return f"unknown field; did you mean {close[0]}?" if close else f"unknown field; known are {', '.join(names)}"
