"""Whole sentences out of a text that still grows. It knows no language: a mark of an end and a space end one."""

import re

_END = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09]*\s*|\n\s*")


_MARKS = ".!?\u2026\"'\u201d\u2019)]"
"""What may stand before the space that makes an end of it."""


class SentenceCutter:
    """Takes the text as it comes, in time that grows with the text. What has no letter and no digit ends nothing."""

    def __init__(self) -> None:
        self._rest = ""
        self._looked_at = 0  # no end lies before it

    def feed(self, text: str) -> list[str]:
        """The sentences that are whole now."""
        self._rest += text
        sentences, start = [], 0
        for end in _END.finditer(self._rest, self._looked_at):
            sentence = self._rest[start : end.end()]
            if _is_speakable(sentence):
                sentences.append(sentence.strip())
                start = end.end()
        self._rest = self._rest[start:]
        self._looked_at = len(self._rest.rstrip(_MARKS))
        return sentences

    def finish(self) -> str:
        """What is left at the end of the text; empty where nothing of it can be said."""
        rest, self._rest = self._rest.strip(), ""
        return rest if _is_speakable(rest) else ""


def _is_speakable(text: str) -> bool:
    return any(char.isalnum() for char in text)
