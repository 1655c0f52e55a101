"""Text that came from elsewhere, made safe to show: no character of it steers a terminal or forges a line."""


def printable(line: str) -> str:
    """Escape whatever is not printable, line ends included, as JSON does; printable text is returned as it is.

    In a line of JSON the result still means the same.
    """
    return line if line.isprintable() else "".join(sign if sign.isprintable() else _escaped(sign) for sign in line)


def without_controls(text: str) -> str:
    """Escape control characters (C0, DEL and C1) but for line ends and tabs: for whole texts, in any script."""
    return "".join(_escaped(sign) if _is_control(sign) else sign for sign in text)


def _is_control(sign: str) -> bool:
    return (sign < " " and sign not in "\n\t") or "\x7f" <= sign <= "\x9f"


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f"}


def _escaped(sign: str) -> str:
    """The escape of RFC 8259: of one unit of UTF-16, or of a pair of them."""
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return _SHORT.get(sign) or "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
