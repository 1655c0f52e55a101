"""Finds the model that is to be validated, and what it is asked with; it starts no server but for the recordings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from antiphon.bootstrap import fitted, installed_config
from antiphon.config import AUTO, load_config, usable_cores
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.inspection import Inspector
from antiphon.validation.errors import ValidationError
from antiphon.validation.inputs import Material, hears
from antiphon.validation.recordings import own_clips, spoken_clips
from antiphon.validation.site import Subject
from antiphon.vocabulary.spec import Capability, Registration
from antiphon.vocabulary.states import Isolation


def find_subject(
    model_id: str,
    *,
    config: Path | None,
    models_root: Path,
    families: Sequence[str],
    threads: str,
    isolation: Isolation,
) -> tuple[Subject, Capability]:
    """A model of a configuration file, or an installed one, on one slot; raises ConfigError, ValidationError.

    `threads` is as in a configuration, "auto" or a number.
    """
    settings = (
        installed_config(models_root, {}, parallel_jobs=False)
        if config is None
        else load_config(config, parallel_jobs=True)
    )
    registration = _of_id(settings.registrations(), model_id)
    count, auto = (usable_cores(), True) if threads == AUTO else (_number(threads), False)
    spec = replace(registration.spec, slots=1, threads=count, auto_threads=auto, isolation=isolation)
    if spec.device != "cpu":
        raise ValidationError(f"{model_id}: nothing but cpu is validated, and its device is {spec.device}")
    asked = replace(registration, spec=spec, threads_asked=True, isolation_asked=False)
    with Inspector(AdapterFinder(families).target) as inspector:
        served, capability = fitted(inspector, asked)
    return Subject(served.spec, tuple(families)), capability


def find_material(subject: Subject, texts: Sequence[str], audio: Sequence[Path], models_root: Path) -> Material:
    """What to ask with: the user's own texts and recordings, or ours, which a Piper voice speaks.

    Raises ValidationError where recordings are wanted and there is no voice to speak them.
    """
    if not hears(subject.spec.task):
        return Material(texts=tuple(texts))
    return Material(clips=tuple(own_clips(audio) if audio else spoken_clips(models_root)))


def _number(threads: str) -> int:
    if threads.isdecimal() and int(threads):
        return int(threads)
    raise ValidationError(f"threads: wanted a number from 1, or {AUTO}; found {threads!r}")


def _of_id(registrations: Sequence[Registration], model_id: str) -> Registration:
    for registration in registrations:
        if registration.spec.id == model_id:
            return registration
    known = ", ".join(registration.spec.id for registration in registrations) or "none"
    raise ValidationError(f"there is no model {model_id!r}; there are {known}")
