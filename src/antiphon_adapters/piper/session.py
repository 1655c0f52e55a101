"""One slot of a voice: checks a request and speaks it piece by piece. It owns no weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest, TooLarge
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.spool import PcmWriter
from antiphon.vocabulary.tasks import AudioDelta, Final, Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult
from antiphon_adapters.options import OptionReader
from antiphon_adapters.piper.loudness import Loudness
from antiphon_adapters.piper.text import check_text
from antiphon_adapters.piper.voice import Delivery, Voice
from antiphon_adapters.stateless import StatelessSession

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FAMILY = "piper"
LONGEST_S = 4 * 3600
"""The longest speech that is answered whole, in seconds: twice a book of 100,000 characters. Streams have no limit."""

LISTED_VOICES = 20
"""How many voices a refusal names."""

OPTIONS = (
    OptionSpec("speed", "number", "How fast to speak; 2 takes half the time.", 0.25, 4.0),
    OptionSpec("noise_scale", "number", "How much the sound varies; the default is the voice's own.", 0.0, 2.0),
    OptionSpec("noise_w", "number", "How much the rhythm varies; the default is the voice's own.", 0.0, 2.0),
    OptionSpec("sentence_silence", "number", "Seconds of silence after each sentence; the default is 0.", 0.0, 2.0),
)


@dataclass(frozen=True, slots=True)
class _Speech:
    """A request that was checked: what to say and how. Units: `silence_samples` at the voice's rate."""

    text: str
    delivery: Delivery
    silence_samples: int


class PiperSession(StatelessSession[Voice]):
    """A session over a shared voice; it keeps no state between requests, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.TTS
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    channels = 1

    def __init__(self, voice: Voice, mode: Mode) -> None:
        super().__init__(voice, mode)
        self.sample_rate = voice.files.sample_rate
        self._options = OptionReader(OPTIONS)

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused. Raises InvalidRequest, also for a text with nothing to say."""
        speech = self._bind(request)
        utterances = self._open.utterances(speech.text, speech.delivery.length_scale)
        if next(utterances, None) is None:
            raise InvalidRequest("input has nothing in it that can be spoken", param="input")

    def run(self, request: TaskRequest) -> TaskResult:
        """Speak the whole text; a cancelled request ends after the piece at hand. Raises TooLarge over `LONGEST_S`."""
        with PcmWriter(self.sample_rate) as writer:
            for samples in self._pieces(request):
                writer.write(samples.data)
                if writer.size_bytes > LONGEST_S * self.sample_rate * BYTES_PER_SAMPLE:
                    limit = f"the limit of {LONGEST_S} seconds for a whole answer"
                    raise TooLarge(
                        f"the speech is longer than {limit}; ask for a stream (stream_format)", param="input"
                    )
            return TaskResult(audio=writer.finish(), sample_rate=self.sample_rate)

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Speak piece by piece, each a sentence or a part of a long one, as one `AudioDelta`.

        Their samples joined are what `run` answers.
        """
        if audio is not None:
            raise InvalidRequest("a voice takes no audio", param="audio")
        for samples in self._pieces(request):
            yield AudioDelta(Pcm.from_bytes(samples.data, self.sample_rate))
        yield Final(TaskResult(sample_rate=self.sample_rate))

    def _bind(self, request: TaskRequest) -> _Speech:
        files = self._open.files
        if not request.text:
            raise InvalidRequest("input is empty", param="input")
        check_text(request.text)
        if request.voice_ref is not None:
            raise InvalidRequest("this voice cannot imitate another", param="voice_ref")
        if request.language is not None and files.language not in (None, request.language):
            raise InvalidRequest(f"language must be {files.language}", param="language")
        options = self._options
        delivery = Delivery(
            length_scale=files.length_scale / options.number(request, "speed", 1.0),
            noise_scale=options.number(request, "noise_scale", files.noise_scale),
            noise_w=options.number(request, "noise_w", files.noise_w),
            speaker=self._speaker(request.voice),
            seed=request.seed,
        )
        silence_s = options.number(request, "sentence_silence", 0.0)
        return _Speech(request.text, delivery, round(silence_s * self.sample_rate))

    def _speaker(self, voice: str | None) -> int | None:
        """The speaker's id for a voice by its name or by its number; None for a one-speaker voice."""
        files = self._open.files
        if voice is None or voice in ("default", files.name):
            return files.default_speaker if files.speakers else None
        if voice in files.speakers:
            return files.speakers[voice]
        if voice in map(str, files.speakers.values()):
            return int(voice)
        names = files.voices[:LISTED_VOICES]
        more = f" and {len(files.voices) - len(names)} more" if len(files.voices) > len(names) else ""
        raise InvalidRequest(f"voice must be one of {', '.join(names)}{more}", param="voice")

    def _pieces(self, request: TaskRequest) -> "Iterator[NDArray[np.float32]]":
        import numpy as np

        speech = self._bind(request)
        voice, loudness = self._open, Loudness()
        silence = np.zeros(speech.silence_samples, np.float32)
        for index, utterance in enumerate(voice.utterances(speech.text, speech.delivery.length_scale)):
            if request.cancelled():
                return
            spoken = voice.speak(utterance.ids, speech.delivery, index, alone=request.at_work() == 1)
            samples = loudness.scale(spoken, ends=utterance.ends)
            yield np.concatenate([samples, silence]) if speech.silence_samples and utterance.ends else samples
