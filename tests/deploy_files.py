"""The files of `deploy/`, read as what reads them does; it asserts nothing."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer.main

from antiphon.cli import app

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def unit_settings(text: str) -> dict[str, list[str]]:
    """The settings of a systemd unit as "Section.Name" with every value that it is given, in order."""
    settings: dict[str, list[str]] = {}
    section = ""
    for line in text.splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line.strip()):
            section = found[1]
        elif line.strip() and not line.startswith("#"):
            name, _, value = line.partition("=")
            settings.setdefault(f"{section}.{name}", []).append(value)
    return settings


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Containerfile; lines that go on are joined."""

    name: str
    rest: str

    def words(self) -> Sequence[str]:
        """Its arguments, in the form of JSON or of a shell, without its options."""
        if self.rest.startswith("["):
            listed: Sequence[str] = json.loads(self.rest)
            return listed
        return [word for word in shlex.split(self.rest) if not word.startswith("--")]


def instructions(text: str) -> Sequence[Instruction]:
    """What a Containerfile does, in order."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def parsed(words: Sequence[str]) -> Mapping[str, object]:
    """What `antiphon WORDS` was told, without doing it; raises typer's UsageError for what it does not understand."""
    command = typer.main.get_command(app).commands[words[0]]
    return command.make_context(words[0], list(words[1:])).params
