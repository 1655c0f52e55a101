"""Who said what: what one model heard joined with the turns that another told apart. Pure; it writes no format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from antiphon.transcripts.clock import span_ms
from antiphon.vocabulary.tasks import TaskResult, Word

UNKNOWN_SPEAKER = "unknown"
"""Who speaks where no turn was found at all."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one speaker says in one go. Units: milliseconds from the start of the recording."""

    speaker: str
    text: str
    start_ms: int
    end_ms: int


def utterances(heard: TaskResult, told: TaskResult) -> list[Utterance]:
    """Join the transcript `heard` with the turns of `told`; the two may count samples at different rates.

    Each word belongs to the turn that it overlaps longest, the earlier one of equals; a word in no turn belongs to the
    nearest. Words in a row that belong to one turn are one utterance. Where the model gave no words, segments stand for
    them, and each is an utterance of its own; a text of which no place is known makes none.
    """
    pieces = _words(heard) if heard.words else _segments(heard)
    pieces.sort(key=lambda piece: piece.start_ms)
    turns = sorted(_turns(told), key=lambda turn: (turn.start_ms, turn.end_ms))
    owners = list(_owners(pieces, turns))
    if not heard.words:
        return [_utterance([piece], turns, owner) for piece, owner in zip(pieces, owners, strict=True)]
    in_a_row = groupby(zip(pieces, owners, strict=True), key=lambda pair: pair[1])
    return [_utterance([piece for piece, _ in pairs], turns, owner) for owner, pairs in in_a_row]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A word, a segment or a turn; `label` is the text of the first two, of a word with what stands before it."""

    label: str
    start_ms: int
    end_ms: int

    def affinity(self, other: "_Stretch") -> tuple[int, int]:
        """How much more the two belong together, the greater it is: their overlap, then how near they are."""
        shared_ms = min(self.end_ms, other.end_ms) - max(self.start_ms, other.start_ms)
        return max(0, shared_ms), min(0, shared_ms)


def _owners(pieces: Sequence[_Stretch], turns: Sequence[_Stretch]) -> Iterator[int | None]:
    """The place in `turns` of each piece's turn, None where there are none; both are in order of their start.

    One sweep: only turns that are not over when a piece starts are looked at, and the last one before and after these.
    """
    coming = 0
    current: list[int] = []
    last_over: list[int] = []  # the one that ended last, once there is one
    for piece in pieces:
        while coming < len(turns) and turns[coming].start_ms < piece.end_ms:
            current.append(coming)
            coming += 1
        over = [place for place in current if turns[place].end_ms <= piece.start_ms]
        if over:
            current = [place for place in current if turns[place].end_ms > piece.start_ms]
            last_over = [max(last_over + over, key=lambda place: turns[place].end_ms)]
        following = [coming] if coming < len(turns) else []
        candidates = sorted(last_over + current + following)  # of equals the first is taken
        yield max(candidates, key=lambda place: piece.affinity(turns[place]), default=None)


def _utterance(pieces: Sequence[_Stretch], turns: Sequence[_Stretch], owner: int | None) -> Utterance:
    return Utterance(
        speaker=UNKNOWN_SPEAKER if owner is None else turns[owner].label,
        text="".join(piece.label for piece in pieces).strip(),
        start_ms=pieces[0].start_ms,
        end_ms=max(piece.end_ms for piece in pieces),
    )


def _words(heard: TaskResult) -> list[_Stretch]:
    labels = _spaced(heard.words, heard.text or "")
    return [_Stretch(label, *span_ms(word, heard.sample_rate or 0)) for word, label in labels]


def _segments(heard: TaskResult) -> list[_Stretch]:
    spoken = [segment for segment in heard.segments if segment.text.strip()]
    return [_Stretch(segment.text, *span_ms(segment, heard.sample_rate or 0)) for segment in spoken]


def _turns(told: TaskResult) -> list[_Stretch]:
    return [_Stretch(turn.speaker_id, *span_ms(turn, told.sample_rate or 0)) for turn in told.speaker_turns]


def _spaced(words: Sequence[Word], text: str) -> Iterator[tuple[Word, str]]:
    """Each word with the space that the text has before it; not every script has one. Elsewhere it is one space."""
    place = 0
    for word in words:
        said, start = word.text.strip(), place
        while start < len(text) and text[start].isspace():
            start += 1
        if text.startswith(said, start):
            yield word, text[place:start] + said
            place = start + len(said)
        else:
            yield word, f" {said}"
