"""Completes a request with what its model's registration says of it: voice presets and defaults. It knows no engine.

What a request says itself goes first, then the preset that it names as its voice, then the model's default preset, then
its default options; the rest is the engine's. All of it is looked at after the grant, as the lease found it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from antiphon.ports.codec import Codec
from antiphon.runtime.api import BoundModel
from antiphon.service.audio_source import open_regular
from antiphon.service.binding import bound_voice, require_language, require_options, takes_option
from antiphon.service.voice_library import NO_LIBRARY, Recording, VoiceLibrary
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest, TooLarge
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.tasks import TaskRequest
from antiphon.vocabulary.terms import ANY_LANGUAGE, LibraryVoice, Reference, Terms, VoiceFile

REFERENCE_TEXT = "reference_text"
"""The option of a model that wants to know what is said in the recording of a voice."""


def asked_language(language: str | None) -> str | None:
    """What a request says of its language: None or blank is nothing; raises InvalidRequest for one that is unknown."""
    return base_language(language) or ANY_LANGUAGE if language and language.strip() else None


def require_terms(model: BoundModel, terms: Terms, prefix: str = "options.") -> None:
    """Refuse a language or an option that the model does not know; raises InvalidRequest. `prefix` is of options."""
    require_language(model, None if terms.language == ANY_LANGUAGE else terms.language)
    require_options(model, terms.options, prefix)
    require_options(model, {name: value for name, value in terms.named.items() if value is not None}, prefix="")


def completed(registration: Registration, own: Terms) -> Terms:
    """What a request says, completed by its model's presets and defaults."""
    presets = registration.voice_presets
    terms = own
    if own.voice is not None and own.voice in presets:
        terms = replace(own, voice=None).over(presets[own.voice])
    if registration.default_voice_preset is not None:
        terms = terms.over(presets[registration.default_voice_preset])
    return terms.over(registration.default_request_options)


def require_presets(model: BoundModel, library: VoiceLibrary = NO_LIBRARY) -> None:
    """Refuse presets and defaults that the model cannot follow; raises InvalidRequest naming the field."""
    registration = model.registration
    for name, preset in registration.voice_presets.items():
        with _placed(f"voice_presets.{name}"):
            require_terms(model, preset)
            _, reference = _speaker(model, preset, library)
            if isinstance(reference, LibraryVoice | VoiceFile):
                _opened(reference, library).body.close()
    with _placed("default_request_options"):
        require_terms(model, registration.default_request_options, prefix="")


async def completed_request(
    model: BoundModel, request: TaskRequest, own: Terms, prefix: str = "options."
) -> TaskRequest:
    """The request as its model is to answer it, where nobody is to speak; raises InvalidRequest."""
    require_terms(model, own, prefix)
    return _fitted(request, completed(model.registration, own))


class SpeechTerms:
    """Completes requests that somebody is to speak, with voices of the library among others.

    The recording that a preset or a voice's name stands for is decoded here, while the slot is held: only now it is
    known which one that is. One that comes with the request was decoded before.
    """

    def __init__(self, codec: Codec, library: VoiceLibrary = NO_LIBRARY) -> None:
        self._codec = codec
        self._library = library

    async def heard(self, recording: Recording | None, wait_s: float) -> Pcm | None:
        """Decode the recording that came with a request; a refusal names the field `voice_ref`.

        Units: `wait_s` as `Codec.decode` has it.
        """
        if recording is None:
            return None
        try:
            return await self._codec.decode(recording.body, wait_s)
        except (InvalidRequest, TooLarge) as refusal:
            raise type(refusal)(refusal.message, param="voice_ref") from refusal

    async def completed_request(
        self, model: BoundModel, request: TaskRequest, own: Terms, prefix: str = "options.", wait_s: float = 0
    ) -> TaskRequest:
        """The request as its model is to answer it. Raises InvalidRequest, also for a voice that there is not.

        Units: `wait_s` as `Codec.decode` has it.
        """
        require_terms(model, own, prefix)
        terms = completed(model.registration, own)
        voice, reference = _speaker(model, terms, self._library)
        text = terms.reference_text
        if isinstance(reference, LibraryVoice | VoiceFile):
            reference, told = await self._own_recording(reference, wait_s)
            text = text or told
        if text and takes_option(model, REFERENCE_TEXT):
            terms = replace(terms, options={REFERENCE_TEXT: text, **terms.options})
        return replace(_fitted(request, terms), voice=voice, voice_ref=reference)

    async def _own_recording(self, reference: LibraryVoice | VoiceFile, wait_s: float) -> tuple[Pcm, str | None]:
        """The recording that a voice stands for, and what is said in it; a fault of it is one of the voice."""
        try:
            recording = _opened(reference, self._library)
            with recording.body as body:
                return await self._codec.decode(body, wait_s), recording.text
        except (InvalidRequest, TooLarge) as refusal:
            raise InvalidRequest(f"the voice's recording cannot be used: {refusal.message}", param="voice") from refusal


def _fitted(request: TaskRequest, terms: Terms) -> TaskRequest:
    return replace(
        request,
        language=None if terms.language == ANY_LANGUAGE else terms.language,
        seed=terms.seed or 0,
        options={name: value for name, value in terms.all_options.items() if value is not None},
    )


def _speaker(model: BoundModel, terms: Terms, library: VoiceLibrary) -> tuple[str | None, Reference | None]:
    """The model's voice and the recording that are meant: where the model clones, a voice may be one of the library."""
    clones, voice, reference = model.capability.clones, terms.voice, terms.reference
    if reference is not None and not clones:
        raise InvalidRequest("the model cannot speak as a recording does", param="voice_ref")
    if voice is not None and clones and voice not in model.capability.voices and voice in library:
        return None, reference or LibraryVoice(voice)
    return bound_voice(model, voice, library if clones else ()), reference


def _opened(reference: LibraryVoice | VoiceFile, library: VoiceLibrary) -> Recording:
    """Open a recording of the server's own; raises InvalidRequest for one that is not there."""
    if isinstance(reference, LibraryVoice):
        return library.open(reference.name)
    try:
        return Recording(open_regular(Path(reference.path).resolve()))
    except (OSError, RuntimeError) as error:
        raise InvalidRequest("there is no recording that can be read at this path", param="voice_ref") from error


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Let a refusal inside the block say where in the registration the field stands."""
    try:
        yield
    except InvalidRequest as refusal:
        param = f"{place}.{refusal.param}"
        raise InvalidRequest(f"{param}: {refusal.message}", param=param) from refusal
