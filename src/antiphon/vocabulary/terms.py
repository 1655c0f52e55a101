"""How a request is to be carried out, as far as somebody has said: itself, or a preset or default of its model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.tasks import OptionValue

ANY_LANGUAGE = "auto"
"""Says that the language is to be detected, whatever the model's defaults are."""

MAX_SEED = 2**63 - 1
"""The largest seed: what fits into a signed integer of 64 bits."""

MIN_SPEED, MAX_SPEED = 0.25, 4.0
"""As OpenAI's API has them: 2.0 is twice as fast."""

NATURAL_SPEED = 1.0
"""The speed at which a model speaks by itself: also one without speeds can do that."""


@dataclass(frozen=True, slots=True)
class LibraryVoice:
    """A recording of the server's voice library, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """A recording that the configuration names, which clients cannot. `path` is absolute."""

    path: str


Reference: TypeAlias = Pcm | LibraryVoice | VoiceFile
"""The recording of a voice that is to be imitated."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was said; None and what is missing was left open.

    `named` are the options that have fields of their own, under the names of these; an option that is None is as the
    model has it by itself. `reference_text` is what is said in the recording.
    """

    voice: str | None = None
    reference: Reference | None = None
    reference_text: str | None = None
    language: str | None = None
    seed: int | None = None
    named: Mapping[str, OptionValue] = field(default_factory=dict)
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def all_options(self) -> dict[str, OptionValue]:
        """Every option; one that has a field of its own is as that field says."""
        return {**self.options, **self.named}

    def over(self, other: Self) -> "Terms":
        """These terms, with what they leave open as the other ones say.

        Who is to speak is never said by both: a voice does not go with the recording of another.
        """
        speaker = other if self.voice is None and self.reference is None else self
        return Terms(
            voice=speaker.voice,
            reference=speaker.reference,
            reference_text=speaker.reference_text if self.reference_text is None else self.reference_text,
            language=other.language if self.language is None else self.language,
            seed=other.seed if self.seed is None else self.seed,
            options={**other.all_options, **self.all_options},
        )


NO_TERMS = Terms()
"""Nothing was said."""


def at_speed(speed: float | None) -> dict[str, OptionValue]:
    """The option that a field `speed` says; the natural speed is the model's own."""
    return {} if speed is None else {"speed": None if speed == NATURAL_SPEED else speed}
