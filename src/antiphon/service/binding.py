"""Makes a client's wish a request for one model, or refuses it: the checks that depend on the model's configuration.

They run after the grant, under the lease: what they read cannot change before the work is done.
"""

import math
from collections.abc import Iterable, Mapping

from antiphon.runtime.api import BoundModel
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import Capability, OptionSpec
from antiphon.vocabulary.tasks import OptionValue, Task

OPENAI_VOICES = (
    "alloy",
    "ash",
    "ballad",
    "cedar",
    "coral",
    "echo",
    "fable",
    "marin",
    "nova",
    "onyx",
    "sage",
    "shimmer",
    "verse",
)
"""Source: https://platform.openai.com/docs/guides/text-to-speech#voice-options. A new one goes last: places count."""

DEFAULT_VOICE = "default"
"""What a model calls the voice that it speaks with by itself, if it has a name for it beside the voice's own."""

LISTED_VOICES = 20
"""How many voices a refusal names."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def require_task(model: BoundModel, *tasks: Task) -> None:
    """Refuse a model that was registered for other work; raises InvalidRequest (param "model")."""
    spec = model.registration.spec
    if spec.task not in tasks:
        raise InvalidRequest(f"model {spec.id!r} is for {spec.task}, not for {' or '.join(tasks)}", param="model")


def bound_voice(model: BoundModel, voice: str | None, others: Iterable[str] = ()) -> str | None:
    """The model's voice that a request means; None is the one that it speaks with by itself.

    A name of OpenAI's that the model does not have stands for one of its own, always the same: they are shared out
    among the model's voices in order. Raises InvalidRequest (param "voice") for any other, naming those that it has,
    its presets and the `others`.
    """
    voices = model.capability.voices
    if voice is None or voice in voices or voice in model.capability.voice_aliases:
        return voice
    if voice in OPENAI_VOICES:
        own = [it for it in voices if it != DEFAULT_VOICE]
        return own[OPENAI_VOICES.index(voice) % len(own)] if own else None
    known = list(dict.fromkeys([*voices, *model.registration.voice_presets, *others]))
    more = f" and {len(known) - LISTED_VOICES} more" if len(known) > LISTED_VOICES else ""
    listed = ", ".join(known[:LISTED_VOICES]) or "none"
    raise InvalidRequest(f"there is no voice {voice[:80]!r}; the model has {listed}{more}", param="voice")


def require_language(model: BoundModel, language: str | None) -> None:
    """Refuse a language that the model is known not to speak; raises InvalidRequest (param "language")."""
    languages = model.capability.languages
    if language is not None and languages and language not in languages:
        known = ", ".join(languages)
        raise InvalidRequest(f"the model does not know the language {language!r}; it knows {known}", param="language")


def require_options(model: BoundModel, options: Mapping[str, OptionValue], prefix: str = "options.") -> None:
    """Refuse an option that the model does not take, or a value out of its range; raises InvalidRequest.

    `param` is the option's name behind `prefix`: OpenAI's own fields have none.
    """
    for name, value in options.items():
        _check(_spec_of(name, model.capability, prefix), value, prefix)


def option_of(capability: Capability, name: str) -> OptionSpec | None:
    """The model's option of this name."""
    return next((option for option in capability.options if option.name == name), None)


def takes_option(model: BoundModel, name: str) -> bool:
    """Whether the model has an option of this name."""
    return option_of(model.capability, name) is not None


def nearest_value(model: BoundModel, name: str, wanted: int) -> int | None:
    """The value of a whole-numbered option that comes nearest to a wish; None where the model has no such option."""
    option = option_of(model.capability, name)
    if option is None:
        return None
    low = wanted if option.minimum is None else math.ceil(option.minimum)
    high = wanted if option.maximum is None else math.floor(option.maximum)
    return min(max(wanted, low), high)


def _spec_of(name: str, capability: Capability, prefix: str) -> OptionSpec:
    if (option := option_of(capability, name)) is not None:
        return option
    known = ", ".join(option.name for option in capability.options) or "none"
    raise InvalidRequest(f"the model takes no option {name[:80]!r}; it takes {known}", param=f"{prefix}{name[:80]}")


def _check(option: OptionSpec, value: OptionValue, prefix: str) -> None:
    param = f"{prefix}{option.name}"
    is_a_stray_bool = isinstance(value, bool) and option.type != "boolean"
    if is_a_stray_bool or not isinstance(value, _TYPES[option.type]):
        raise InvalidRequest(f"{param} must be of type {option.type}", param=param)
    if isinstance(value, (int, float)):
        low = -math.inf if option.minimum is None else option.minimum
        high = math.inf if option.maximum is None else option.maximum
        if not low <= value <= high:
            raise InvalidRequest(f"{param} must be from {low:g} to {high:g}", param=param)
    if option.choices and value not in option.choices:
        raise InvalidRequest(f"{param} must be one of {', '.join(option.choices)}", param=param)
