"""What a model of each task is asked: inputs that it must answer, requests that it must refuse. It sends nothing."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon.validation.errors import ValidationError
from antiphon.validation.questions import Input
from antiphon.validation.recordings import Clip, joined, retuned, silence
from antiphon.validation.texts import TEXTS, languages_for
from antiphon.vocabulary.spec import Capability
from antiphon.vocabulary.tasks import OptionValue, Task

_MOST_LANGUAGES = 2


@dataclass(frozen=True, slots=True)
class Material:
    """What inputs are made of: the texts that a user gave, if any, and recordings (none for a task that hears none)."""

    texts: tuple[str, ...] = ()
    clips: tuple[Clip, ...] = ()


@dataclass(frozen=True, slots=True)
class Inputs:
    """What to ask: `good` are different from each other; which of the `bad` are refused is seen on one slot."""

    good: tuple[Input, ...]
    bad: tuple[Input, ...]


def inputs_for(task: Task, capability: Capability, material: Material) -> Inputs:
    """The inputs of a task; raises ValidationError where there is too little to ask."""
    good = _INPUTS[task](capability, material)
    if len(good) < 2:
        raise ValidationError(f"a {task} model needs at least two inputs to be told apart; there is {len(good)}")
    return Inputs(tuple(good), tuple(_refusals(task, material)))


def hears(task: Task) -> bool:
    """Whether models of the task are given recordings."""
    return task is not Task.TTS


def _spoken(capability: Capability, material: Material) -> list[Input]:
    texts = _own_texts(material.texts) or {
        (name if language == "en" else f"{language}-{name}"): text
        for language in languages_for(capability.languages, _MOST_LANGUAGES)
        for name, text in TEXTS[language].items()
    }
    inputs = [Input(name, {"text": text}) for name, text in texts.items()]
    middling = sorted(texts.values(), key=len)[len(texts) // 2]
    inputs.append(Input("seeded", {"text": middling, "seed": 7}))
    if "speed" in {option.name for option in capability.options}:
        inputs.append(Input("faster", {"text": middling, "options": {"speed": 1.5}}))
    if len(capability.voices) > 1:
        inputs.append(Input("other-voice", {"text": middling, "voice": capability.voices[-1]}))
    return inputs


def _transcribed(capability: Capability, material: Material) -> list[Input]:
    inputs = [Input(clip.name, {"audio": _base64(clip.wav)}) for clip in material.clips]
    inputs.append(Input("silence", {"audio": _base64(silence())}))
    options = {option.name for option in capability.options}
    middling = _base64(sorted((clip.wav for clip in material.clips), key=len)[len(material.clips) // 2])
    if "word_timestamps" in options:
        inputs.append(Input("words", {"audio": middling, "options": {"word_timestamps": True}}))
    inputs.append(Input("prompted", {"audio": middling, "text": "A letter about snails, Mondays and Dr. Smith."}))
    if len(capability.languages) > 1 and "en" in capability.languages:
        inputs.append(Input("told-language", {"audio": middling, "language": "en"}))
    return inputs


def _heard(capability: Capability, material: Material) -> list[Input]:
    del capability
    inputs = [Input(clip.name, {"audio": _base64(clip.wav)}) for clip in material.clips]
    inputs.append(Input("silence", {"audio": _base64(silence())}))
    if len(material.clips) > 1:
        wavs = [clip.wav for clip in material.clips]
        inputs.append(Input("joined", {"audio": _base64(joined(wavs))}))
        inputs.append(Input("two-voices", {"audio": _base64(joined([retuned(wavs[0]), *wavs[1:3]]))}))
    return inputs


def _aligned(capability: Capability, material: Material) -> list[Input]:
    del capability
    return [Input(clip.name, _with_text(clip)) for clip in material.clips if clip.text]


_INPUTS: Mapping[Task, Callable[[Capability, Material], list[Input]]] = {
    Task.TTS: _spoken,
    Task.ASR: _transcribed,
    Task.DIAR: _heard,
    Task.VAD: _heard,
    Task.ALIGN: _aligned,
}


def _refusals(task: Task, material: Material) -> list[Input]:
    good = _a_request(task, material)
    refused = [Input("unknown-option", {**good, "options": {"antiphon_no_such_option": 1}})]
    if task in (Task.TTS, Task.ALIGN):
        refused.append(Input("empty-text", {**good, "text": ""}))
        refused.append(Input("unspeakable-text", {**good, "text": "?!"}))
    if task is not Task.TTS:
        refused.append(Input("broken-audio", {**good, "audio": _base64(b"RIFF\0\0\0\0WAVEfmt no audio at all")}))
        refused.append(Input("missing-audio", {name: value for name, value in good.items() if name != "audio"}))
    return refused


def _a_request(task: Task, material: Material) -> Mapping[str, OptionValue]:
    if not hears(task):
        return {"text": TEXTS["en"]["sentence"]}
    first, *_ = material.clips
    return _with_text(first) if task is Task.ALIGN else {"audio": _base64(first.wav)}


def _with_text(clip: Clip) -> Mapping[str, OptionValue]:
    return {"audio": _base64(clip.wav), "text": clip.text}


def _own_texts(texts: Sequence[str]) -> dict[str, str]:
    return {f"text-{number}": text for number, text in enumerate(texts, 1)}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
