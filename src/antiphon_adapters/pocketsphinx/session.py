"""One slot of a PocketSphinx model: checks a request and says when each word of its text is spoken."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spool import pieces_of
from antiphon.vocabulary.tasks import Interface, Mode, Task, TaskRequest, TaskResult, Word
from antiphon_adapters.pocketsphinx.model_files import ModelFiles
from antiphon_adapters.pocketsphinx.spoken import Speller, SpokenWord
from antiphon_adapters.stateless import StatelessSession

if TYPE_CHECKING:
    from pocketsphinx import Decoder

FAMILY = "pocketsphinx"
SAMPLE_RATE = 16_000

FRAME_SAMPLES = SAMPLE_RATE // 100
"""Places are told in frames of 10 ms."""

BLOCK_SAMPLES = SAMPLE_RATE
"""How much a decoder hears at once: it keeps Python's lock for as long."""

MAX_WORDS = 5_000
"""The search takes time by the words of the text for every frame: half an hour of speech is enough for one request."""

NO_DICTIONARY = "/dev/null"
"""Each decoder is told the words of its text and no others: reading all takes ten times as long as the rest."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What is in memory between requests: the dictionary. A decoder reads the acoustic model itself."""

    files: ModelFiles
    pronunciations: Mapping[str, tuple[str, ...]]


class PocketsphinxSession(StatelessSession[Weights]):
    """A session over a shared dictionary, with a decoder of its own for each request.

    State leaks from one utterance of a decoder into the next (the mean that it takes off the features goes on).
    """

    family = FAMILY
    task = Task.ALIGN
    interfaces = frozenset({Interface.OFFLINE})
    sample_rate = SAMPLE_RATE
    channels = 1

    def __init__(self, weights: Weights, mode: Mode) -> None:
        super().__init__(weights, mode)
        self._speller = Speller(weights.pronunciations.__contains__)

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused before listening. Raises InvalidRequest."""
        _require_mono(request.audio)
        self._spelled(request)

    def run(self, request: TaskRequest) -> TaskResult:
        """Say when each word is spoken. Raises InvalidRequest where the text is not what is said.

        A request that is cancelled ends after the second of audio at hand, without words.
        """
        audio, words = _require_mono(request.audio), self._spelled(request)
        spans = self._heard(audio, [said for word in words for said in word.said], request)
        result = TaskResult(text=request.text, language="en", sample_rate=SAMPLE_RATE)
        if request.cancelled():
            return result
        if spans is None:
            raise InvalidRequest("the text was not found in the audio, word for word", param="text")
        placed = iter(spans)
        return TaskResult(
            text=request.text,
            language="en",
            sample_rate=SAMPLE_RATE,
            words=tuple(_word(word, [next(placed) for _ in word.said], audio.frames) for word in words),
        )

    def _spelled(self, request: TaskRequest) -> list[SpokenWord]:
        if request.language not in (None, "en"):
            raise InvalidRequest("language must be en", param="language")
        words: list[SpokenWord] = []
        count = 0
        for word in self._speller.spell(request.text or ""):
            words.append(word)
            count += len(word.said)
            if count > MAX_WORDS:  # at once: spelling out the numbers of a whole book takes seconds
                raise InvalidRequest(f"the text has too many words; the limit is {MAX_WORDS}", param="text")
        if not words:
            raise InvalidRequest("there is no text with words in it", param="text")
        known = self._open.pronunciations
        unknown = dict.fromkeys(said for word in words for said in word.said if said not in known)
        if unknown:
            named = ", ".join(repr(said[:40]) for said in list(unknown)[:10])
            more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
            raise InvalidRequest(f"the dictionary does not say how these sound: {named}{more}", param="text")
        return words

    def _heard(self, audio: Pcm, said: list[str], request: TaskRequest) -> list[tuple[int, int]] | None:
        """Where each word is, in frames, the last one included; None where they are not all there."""
        decoder = self._decoder(said)
        decoder.start_utt()
        for block in _blocks(audio):
            if request.cancelled():
                break
            decoder.process_raw(block)
        decoder.end_utt()
        wanted = set(said)  # between the words there are silences and noises
        segments = [it for it in decoder.seg() or () if it.word.partition("(")[0] in wanted]
        found = [(it.start_frame, it.end_frame) for it in segments]
        return found if len(found) == len(said) else None

    def _decoder(self, said: list[str]) -> "Decoder":
        from pocketsphinx import Decoder

        weights = self._open
        decoder = Decoder(hmm=str(weights.files.acoustic), dict=NO_DICTIONARY, lm=None, loglevel="FATAL")
        for word in dict.fromkeys(said):
            for number, phonemes in enumerate(weights.pronunciations[word], 1):
                decoder.add_word(word if number == 1 else f"{word}({number})", phonemes, update=False)
        decoder.set_align_text(" ".join(said))
        return decoder


def _word(word: SpokenWord, spans: list[tuple[int, int]], frames: int) -> Word:
    start = min(spans[0][0] * FRAME_SAMPLES, frames)
    return Word(word.text, start, max(start, min((spans[-1][1] + 1) * FRAME_SAMPLES, frames)))


def _blocks(audio: Pcm) -> Iterator[bytes]:
    """16-bit samples, a second at a time; what is no number is silence, what is too loud is cut off."""
    import numpy as np

    for piece in pieces_of(audio, BLOCK_SAMPLES):
        samples = np.frombuffer(piece.cast("B"), np.float32)
        clean = np.clip(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
        yield np.rint(clean * 32_767).astype("<i2").tobytes()


def _require_mono(pcm: Pcm | None) -> Pcm:
    if pcm is None:
        raise InvalidRequest("there is no audio", param="audio")
    if (pcm.rate, pcm.channels) != (SAMPLE_RATE, 1):
        raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
    return pcm
