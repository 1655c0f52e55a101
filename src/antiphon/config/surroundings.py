"""What a configuration is validated against: where it stands, and the runtime that was chosen."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationInfo


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folder of a configuration's relative paths, and the runtime; the pydantic context of every validation.

    `tells_where` says whether an error may name what a relative path leads to, which a client is not to know.
    """

    base: Path
    parallel_jobs: bool
    tells_where: bool = True


def surroundings_of(info: ValidationInfo) -> Surroundings:
    """The surroundings of a validation."""
    assert isinstance(info.context, Surroundings), "a configuration is validated with its Surroundings as context"
    return info.context
