"""Reads fields that routes share into the domain's words; raises InvalidRequest naming the field."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from typing import BinaryIO, TypeVar

from starlette.requests import HTTPConnection

from antiphon.http.schemas import MAX_TIMEOUT_MS, AudioData
from antiphon.service.audio_source import from_base64, from_path
from antiphon.service.voice_library import Recording
from antiphon.service.voices import VoiceService
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound, TooLarge

E = TypeVar("E", bound=StrEnum)


def choice(kind: type[E], text: str, param: str, *, without: Collection[E] = ()) -> E:
    """One of an enumeration's values, but for some, in any case of its letters."""
    known = [value for value in kind if value not in without]
    if (said := text.lower()) in known:
        return kind(said)
    raise InvalidRequest(f"{param} {text[:40]!r} is not supported; supported are {', '.join(known)}", param=param)


def number(text: str | None, param: str, low: float, high: float) -> float | None:
    """A number of a form field; blank is "not said"."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InvalidRequest(f"{param} must be a number from {low:g} to {high:g}", param=param)
    return value


def integer(text: str | None, param: str, low: int, high: int) -> int | None:
    """An integer of a form field; blank is "not said"."""
    if text is None or not text.strip():
        return None
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20 and low <= int(digits) <= high):
        raise InvalidRequest(f"{param} must be an integer from {low} to {high}", param=param)
    return int(digits)


def switch(text: str | None, param: str) -> bool:
    """A truth value of a form field; blank is false."""
    match (text or "").strip().lower():
        case "true" | "1":
            return True
        case "false" | "0" | "":
            return False
        case _:
            raise InvalidRequest(f"{param} must be true or false", param=param)


@contextmanager
def called(names: Mapping[str, str]) -> Iterator[None]:
    """Let a refusal inside the block name a field as this route calls it, where that is another name."""
    try:
        yield
    except (InvalidRequest, ModelNotFound, TooLarge) as refusal:
        if refusal.param is None or refusal.param not in names:
            raise
        raise type(refusal)(refusal.message, param=names[refusal.param]) from refusal


def busy_timeout_ms(request: HTTPConnection, in_body: int | None = None) -> int | None:
    """The longest wait for a slot, in milliseconds: what the body asks for, else the query; 0 is no bound."""
    return _timeout_ms(request, "busy_timeout_ms", in_body)


def run_timeout_ms(request: HTTPConnection, in_body: int | None = None) -> int | None:
    """The longest time without progress in the engine, in milliseconds, as `busy_timeout_ms` is found."""
    return _timeout_ms(request, "run_timeout_ms", in_body)


def _timeout_ms(request: HTTPConnection, name: str, in_body: int | None) -> int | None:
    if not request.scope["query_string"]:
        return in_body
    in_query = integer(request.query_params.get(name), name, 0, MAX_TIMEOUT_MS)
    return in_query if in_body is None else in_body


async def open_audio(audio: AudioData | str, allowed_roots: Sequence[str], param: str) -> BinaryIO:
    """Open the audio of a JSON body; the caller closes it."""
    if isinstance(audio, str):
        return BytesIO(await from_base64(audio, param))
    match audio.data, audio.path:
        case str(data), None:
            return BytesIO(await from_base64(data, f"{param}.data"))
        case None, str(path):
            return from_path(path, allowed_roots, f"{param}.path")
        case _:
            raise InvalidRequest(f"{param} must be base64, or an object with either data or path", param=param)


@dataclass(frozen=True, slots=True)
class VoiceSources:
    """Where the recording of a voice may come from, beside the body itself: the library, and files below folders."""

    voices: VoiceService
    allowed_roots: Sequence[str]

    async def opened(self, reference: AudioData | str | None, param: str, stack: ExitStack) -> Recording | None:
        """Open the recording that a JSON body has or names, a bare text being a name; the stack closes it."""
        if reference is None:
            return None
        recording = (
            self.voices.open(reference, param)
            if isinstance(reference, str)
            else Recording(await open_audio(reference, self.allowed_roots, param))
        )
        stack.enter_context(recording.body)
        return recording
