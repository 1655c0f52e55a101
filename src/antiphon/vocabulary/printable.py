"""Text that came from elsewhere, made safe to show: no character of it steers a terminal or forges a line."""

import json


def printable(line: str) -> str:
    """Escape whatever is not printable, line ends included, as JSON does; printable text is returned as it is.

    In a line of JSON the result still means the same.
    """
    return line if line.isprintable() else "".join(map(_escaped, line))


def without_controls(text: str) -> str:
    """Escape control characters (C0, DEL and C1) but for line ends and tabs: for whole texts, in any script."""
    return "".join(json.dumps(sign)[1:-1] if _is_control(sign) else sign for sign in text)


def _is_control(sign: str) -> bool:
    return (sign < " " and sign not in "\n\t") or "\x7f" <= sign <= "\x9f"


def _escaped(sign: str) -> str:
    return sign if sign.isprintable() else json.dumps(sign)[1:-1]
