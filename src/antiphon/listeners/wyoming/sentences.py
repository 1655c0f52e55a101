"""Whole sentences out of a text that still grows. It only knows what may yet change, and not where sentences end."""

from antiphon.text.sentences import pieces

LONGEST_SPACE = 16
"""How much space is held back as it came."""


class SentenceCutter:
    """Takes the text as it comes. The last piece is held back: what follows may belong to it.

    What is held back is looked at again with each text that comes. It is never longer than a piece and the little that
    the space behind it means, so that a text of spaces that comes sign by sign costs no more than any other.
    """

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """The sentences, and the parts of long ones, that nothing can change any more."""
        self._rest += text
        *whole, last = [it.text for it in pieces(self._rest)] or [""]
        self._rest = last and last + _meaning_of(self._rest[len(self._rest.rstrip()) :])
        return [it for it in whole if _is_speakable(it)]

    def finish(self) -> str:
        """What is left at the end of the text; empty where nothing of it can be said."""
        rest, self._rest = self._rest.strip(), ""
        return rest if _is_speakable(rest) else ""


def _meaning_of(space: str) -> str:
    """The same space, or, for a long one, the shortest that separates as much: words, lines, or paragraphs."""
    if len(space) <= LONGEST_SPACE:
        return space
    breaks = len(f"{space}.".splitlines()) - 1
    return "\n" * min(breaks, 2) or space[:1]


def _is_speakable(text: str) -> bool:
    return any(char.isalnum() for char in text)
