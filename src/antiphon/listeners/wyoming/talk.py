"""What is said on one connection: the requests of Wyoming, each answered through the server's HTTP application.

A request that fails is answered with an `error` event, after which the connection is closed: most clients pass over
that event, and would wait for ever.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped

from antiphon.listeners.in_process import AppRefusal, InProcessApp
from antiphon.listeners.wyoming.catalogue import Catalogue
from antiphon.listeners.wyoming.events import number_of, optional_text_of, required, text_of
from antiphon.listeners.wyoming.hearing import HearingOrder, SampleFormat, TextPiece, WholeText, transcribe
from antiphon.listeners.wyoming.options import Options
from antiphon.listeners.wyoming.peer import Peer
from antiphon.listeners.wyoming.sentences import SentenceCutter
from antiphon.listeners.wyoming.speaking import SpeechOrder, speaking
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest, ShuttingDown, TooLarge
from antiphon.vocabulary.tasks import Task

_PLAIN_TEXT = "text"


class Talk:
    """One connection's requests, one after another."""

    def __init__(self, peer: Peer, app: InProcessApp, catalogue: Catalogue, options: Options) -> None:
        self._peer = peer
        self._app = app
        self._catalogue = catalogue
        self._options = options
        self._wish = Event(Transcribe().event().type)

    async def run(self) -> None:
        """Answer requests until one fails, the server stops or the peer has left, which raises what its reader does."""
        try:
            while not self._peer.must_end:
                await self._answer(await self._peer.next_event(in_request=False))
        except (AppRefusal, AntiphonError) as error:
            await self._peer.part(Error(error.message, error.code).event())

    async def _answer(self, event: Event) -> None:
        if self._peer.must_end:
            raise ShuttingDown
        if Transcribe.is_type(event.type):
            self._wish = event
        elif AudioStart.is_type(event.type) or AudioChunk.is_type(event.type):
            await self._hear(event)
        elif Synthesize.is_type(event.type):
            await self._say(await self._speech_order(event), text_of(event, "text"))
        elif SynthesizeStart.is_type(event.type):
            await self._say_as_it_grows(await self._speech_order(event))
        else:
            await self._answer_aside(event)

    async def _answer_aside(self, event: Event) -> None:
        """Answer what may come at any time; what is not known is passed over, as the protocol has it."""
        if Describe.is_type(event.type):
            await self._peer.send((await self._catalogue.info()).event())
        elif Ping.is_type(event.type):
            await self._peer.send(Pong(text=optional_text_of(event, "text")).event())

    async def _hear(self, first: Event) -> None:
        wish, self._wish = self._wish, Event(self._wish.type)
        language = optional_text_of(wish, "language")
        model = await self._catalogue.choose(Task.ASR, optional_text_of(wish, "name"), language)
        order = HearingOrder(model, language, _expected_words(wish), _format_of(first))
        has_begun = False
        samples = self._samples(first, order.format)
        async with aclosing(transcribe(self._app, order, samples, live=self._options.live)) as transcript:
            async for heard in transcript:
                if not has_begun:
                    has_begun = True
                    await self._peer.send(TranscriptStart(language=language).event())
                match heard:
                    case TextPiece(text):
                        await self._peer.send(TranscriptChunk(text).event())
                    case WholeText(text):
                        await self._peer.send(Transcript(text, language=language).event())
        await self._peer.send(TranscriptStop().event())

    async def _samples(self, first: Event, samples: SampleFormat) -> AsyncIterator[bytes]:
        """The samples of one audio, from its first event to `audio-stop`; one that has none at a stop is refused."""
        event, size = first, 0
        while not AudioStop.is_type(event.type):
            if self._peer.must_end:
                raise ShuttingDown
            if AudioStart.is_type(event.type) and event is not first:
                raise InvalidRequest("audio-start: another audio has no audio-stop yet")
            if AudioChunk.is_type(event.type):
                if _format_of(event) != samples:
                    raise InvalidRequest("audio-chunk: the audio changed its rate, width or channels")
                piece = event.payload or b""
                size += len(piece)
                if size > self._options.max_audio_bytes:
                    raise TooLarge(f"the audio is larger than the limit of {self._options.max_audio_bytes} bytes")
                yield piece
            else:
                await self._answer_aside(event)
            event = await self._peer.next_event(in_request=True)

    async def _say_as_it_grows(self, order: SpeechOrder) -> None:
        """Say each sentence of a text once it is whole, while the rest of it still comes."""
        cutter, size = SentenceCutter(), 0
        while not SynthesizeStop.is_type((event := await self._peer.next_event(in_request=True)).type):
            if SynthesizeChunk.is_type(event.type):
                text = text_of(event, "text")
                size += len(text)
                self._refuse_long(size)
                for sentence in cutter.feed(text):
                    await self._say(order, sentence)
            elif not Synthesize.is_type(event.type):  # it brings all of the text once more, for other servers
                await self._answer_aside(event)
        if rest := cutter.finish():
            await self._say(order, rest)
        await self._peer.send(SynthesizeStopped().event())

    async def _say(self, order: SpeechOrder, text: str) -> None:
        self._refuse_long(len(text))
        async with speaking(self._app, order.saying(text)) as speech:
            shape = {"rate": speech.rate, "width": speech.width, "channels": speech.channels}
            await self._peer.send(AudioStart(**shape).event())
            async for chunk in speech.chunks:
                await self._peer.send(AudioChunk(**shape, audio=chunk).event())
            await self._peer.send(AudioStop().event())

    async def _speech_order(self, event: Event) -> SpeechOrder:
        if event.data.get("text_format", _PLAIN_TEXT) != _PLAIN_TEXT:
            raise InvalidRequest(f"{event.type}: text_format must be {_PLAIN_TEXT}")
        voice = Event("voice", required(event.data.get("voice") or {}, dict, f"{event.type}: voice"))
        name, language = optional_text_of(voice, "name"), optional_text_of(voice, "language")
        model = await self._catalogue.choose(Task.TTS, name, language)
        return SpeechOrder(model, voice=optional_text_of(voice, "speaker"), language=None if name else language)

    def _refuse_long(self, chars: int) -> None:
        if chars > self._options.max_text_chars:
            raise TooLarge(f"the text is longer than the limit of {self._options.max_text_chars} characters")


def _format_of(event: Event) -> SampleFormat:
    return SampleFormat(number_of(event, "rate"), number_of(event, "width"), number_of(event, "channels"))


def _expected_words(wish: Event) -> str:
    """The names and terms of a request, as a prompt."""
    lists = (wish.data.get(name) or [] for name in ("transcript_names", "transcript_terms"))
    return ", ".join(word for words in lists for word in required(words, list[str], f"{wish.type}: expected words"))
