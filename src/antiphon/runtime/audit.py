"""The audit list: which family, task, mode and device may use how many slots, and on what evidence."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode, Task


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """What `antiphon validate` wrote about one model; `file` starts at the root of the source tree."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Audit:
    """One line of the list; `evidence` names the runs that it rests on, none for a test double.

    `auto_threads`: answers were seen to be the same whatever `threads: auto` chooses.
    """

    family: str
    device: str
    tasks: frozenset[Task]
    modes: frozenset[Mode]
    max_slots: int
    evidence: tuple[EvidenceFile, ...]
    auto_threads: bool = False

    def covers(self, spec: ModelSpec) -> bool:
        """Whether this line speaks of the model."""
        return (
            (spec.family, spec.device) == (self.family, self.device)
            and spec.task in self.tasks
            and spec.mode in self.modes
        )


@cache
def audits() -> tuple[Audit, ...]:
    """Read the list that ships with antiphon (rule.empty_admission_lists)."""
    table = tomllib.loads(files("antiphon.runtime").joinpath("audited_models.toml").read_text("utf-8"))
    return tuple(
        Audit(
            family=line["family"],
            device=line["device"],
            tasks=frozenset(map(Task, line["tasks"])),
            modes=frozenset(map(Mode, line["modes"])),
            max_slots=line["max_slots"],
            evidence=tuple(EvidenceFile(it["file"], it["sha256"]) for it in line["evidence"]),
            auto_threads=line.get("threads") == "auto",
        )
        for line in table["audited"]
    )


def audited_slots(spec: ModelSpec) -> int:
    """The most slots that this model may use; 1 where no line covers it."""
    return max((audit.max_slots for audit in audits() if audit.covers(spec)), default=1)


def audited_auto_threads(spec: ModelSpec) -> bool:
    """Whether `threads: auto` is validated for this model, and so the default."""
    return any(audit.auto_threads for audit in audits() if audit.covers(spec))


def check_slots(spec: ModelSpec, max_slots_of: Callable[[ModelSpec], int] = audited_slots) -> None:
    """Raise ConfigError for a count that the list does not allow: it is known without loading anything."""
    allowed = max_slots_of(spec)
    if spec.slots > allowed:
        raise ConfigError(
            f"model {spec.id!r}: slots is {spec.slots}, and {spec.family} on {spec.device} may use {allowed} "
            f"({spec.task}, {spec.mode})"
        )
