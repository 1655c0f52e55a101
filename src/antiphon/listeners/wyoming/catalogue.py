"""The server's models as Wyoming tells of them, and which of them a request means."""

from collections.abc import Iterable, Sequence

import msgspec
from wyoming.info import AsrModel, AsrProgram, Attribution, Info, TtsProgram, TtsVoice, TtsVoiceSpeaker

from antiphon import __version__
from antiphon.listeners.in_process import InProcessApp
from antiphon.vocabulary.errors import ModelNotFound
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.tasks import Task

_PROGRAM = "antiphon"
_KINDS = {Task.ASR: "speech recognition", Task.TTS: "speech synthesis"}


class Model(msgspec.Struct, frozen=True):
    """One model of `GET /v1/models`. No `languages` says that they are not known."""

    id: str
    family: str
    task: str
    languages: tuple[str, ...] = ()
    voices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    alias_of: str | None = None


class _Models(msgspec.Struct):
    data: list[Model]


class Catalogue:
    """The models of one server, asked for anew each time; `asr_model` and `tts_model` are taken where none is named."""

    def __init__(self, app: InProcessApp, asr_model: str | None, tts_model: str | None) -> None:
        self._app = app
        self._preferred = {Task.ASR: asr_model, Task.TTS: tts_model}

    async def info(self) -> Info:
        """What answers `describe`; a kind of which there is no model has no program."""
        models = await self._models()
        asr, tts = self._of(Task.ASR, models), self._of(Task.TTS, models)
        return Info(asr=[_asr_program(asr)] if asr else [], tts=[_tts_program(tts)] if tts else [])

    async def choose(self, task: Task, name: str | None, language: str | None) -> str:
        """The id of the model that is meant: by its name, else the first that may know the language, else the first.

        A name is not looked up: the server refuses one that it does not know. Raises ModelNotFound where there is no
        model at all, InvalidRequest for a language that nobody knows.
        """
        if name:
            return name
        models = self._of(task, await self._models())
        if not models:
            raise ModelNotFound(f"this server has no model for {_KINDS[task]}")
        wanted = base_language(language)
        fitting = (it for it in models if wanted is None or not it.languages or wanted in it.languages)
        return next(fitting, models[0]).id

    async def _models(self) -> list[Model]:
        listed = msgspec.json.decode(await self._app.get("/v1/models"), type=_Models).data
        return [it for it in listed if it.alias_of is None]

    def _of(self, task: Task, models: Iterable[Model]) -> list[Model]:
        """The models of a task, the preferred one first."""
        preferred = self._preferred[task]
        return sorted((it for it in models if it.task == task), key=lambda it: preferred not in (it.id, *it.aliases))


def _asr_program(models: Sequence[Model]) -> AsrProgram:
    return AsrProgram(
        name=_PROGRAM,
        attribution=Attribution(_PROGRAM, ""),
        installed=True,
        description=None,
        version=__version__,
        models=[
            AsrModel(
                name=it.id,
                attribution=Attribution(it.family, ""),
                installed=True,
                description=it.id,
                version=None,
                languages=list(it.languages),
            )
            for it in models
        ],
        supports_transcript_streaming=True,
    )


def _tts_program(models: Sequence[Model]) -> TtsProgram:
    return TtsProgram(
        name=_PROGRAM,
        attribution=Attribution(_PROGRAM, ""),
        installed=True,
        description=None,
        version=__version__,
        voices=[
            TtsVoice(
                name=it.id,
                attribution=Attribution(it.family, ""),
                installed=True,
                description=it.id,
                version=None,
                languages=list(it.languages),
                speakers=[TtsVoiceSpeaker(name) for name in it.voices] or None,
            )
            for it in models
        ],
        supports_synthesize_streaming=True,
    )
