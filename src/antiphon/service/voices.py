"""What a client may ask for as a voice: those of the models, their presets, and the recordings of the library."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from antiphon.runtime.api import ModelView, Runtime
from antiphon.service.voice_library import Recording, VoiceLibrary
from antiphon.vocabulary.tasks import Task


class VoiceKind(StrEnum):
    """Where a voice comes from."""

    PRESET = "preset"
    MODEL = "model"
    LIBRARY = "library"


@dataclass(frozen=True, slots=True)
class Voice:
    """One name that a request may have as its `voice`, and the models that know it."""

    name: str
    kind: VoiceKind
    models: tuple[str, ...]


class VoiceService:
    """Tells of voices. It reads what is registered and the library's folder, and waits for no model."""

    def __init__(self, runtime: Runtime, library: VoiceLibrary) -> None:
        self._runtime = runtime
        self._library = library

    def open(self, name: str, param: str) -> Recording:
        """Open a recording of the library; raises InvalidRequest for a name that none has."""
        return self._library.open(name, param)

    def default_preset(self, model_id: str) -> str | None:
        """The preset of requests that name none; raises ModelNotFound."""
        return self._runtime.view(model_id).registration.default_voice_preset

    def of_model(self, model_id: str) -> tuple[Voice, ...]:
        """The voices of one model, what goes before others of the same name first; raises ModelNotFound."""
        return self._of([self._runtime.view(model_id)])

    def all(self) -> tuple[Voice, ...]:
        """The voices of every model that speaks."""
        return self._of([view for view in self._runtime.views() if view.registration.spec.task is Task.TTS])

    def _of(self, views: list[ModelView]) -> tuple[Voice, ...]:
        found: dict[tuple[str, VoiceKind], list[str]] = {}
        in_library = self._library.names() if any(view.capability.clones for view in views) else ()
        for view in views:
            for name, kind in _names(view, in_library):
                found.setdefault((name, kind), []).append(view.registration.spec.id)
        return tuple(Voice(name, kind, tuple(models)) for (name, kind), models in found.items())


def _names(view: ModelView, in_library: tuple[str, ...]) -> Iterator[tuple[str, VoiceKind]]:
    """A model's voices; a name that stands for something else before is not told again."""
    taken: set[str] = set()
    of_kinds = (
        (VoiceKind.PRESET, view.registration.voice_presets),
        (VoiceKind.MODEL, view.capability.voices),
        (VoiceKind.LIBRARY, in_library if view.capability.clones else ()),
    )
    for kind, names in of_kinds:
        yield from ((name, kind) for name in names if name not in taken)
        taken.update(names)
