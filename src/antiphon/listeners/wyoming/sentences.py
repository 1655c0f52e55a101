"""Whole sentences out of a text that still grows. It only knows what may yet change, and not where sentences end."""

from antiphon.text.sentences import pieces


class SentenceCutter:
    """Takes the text as it comes. The last piece is held back: what follows may belong to it."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """The sentences, and the parts of long ones, that nothing can change any more."""
        self._rest += text
        *whole, last = [it.text for it in pieces(self._rest)] or [""]
        self._rest = last + self._rest[len(self._rest.rstrip()) :]
        return [it for it in whole if _is_speakable(it)]

    def finish(self) -> str:
        """What is left at the end of the text; empty where nothing of it can be said."""
        rest, self._rest = self._rest.strip(), ""
        return rest if _is_speakable(rest) else ""


def _is_speakable(text: str) -> bool:
    return any(char.isalnum() for char in text)
