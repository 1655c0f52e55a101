"""What a validation ran on: the machine, the libraries and the files of the model."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path

import psutil

from antiphon.bench.machine import processor_name
from antiphon.bench.processes import Measured
from antiphon.config import usable_cores
from antiphon.validation.evidence import FileFact
from antiphon.vocabulary.spec import ModelSpec

_GIB = 1024**3
_WORD = "modules "


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine, the libraries by name, and the files of the model."""

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    files: tuple[FileFact, ...]


def surroundings_of(spec: ModelSpec, families: Sequence[str]) -> Surroundings:
    """Look at all of it; raises BenchError where the model does not load."""
    return Surroundings(machine_facts(), versions(spec, families), file_facts(Path(spec.path)))


def machine_facts() -> dict[str, str]:
    """The processor, its cores, the kernel and the memory."""
    return {
        "processor": processor_name(),
        "cores": f"{usable_cores()} of {os.cpu_count()} usable",
        "memory": f"{psutil.virtual_memory().total / _GIB:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def versions(spec: ModelSpec, families: Sequence[str]) -> dict[str, str]:
    """Python, and the version of every package that the engine has in its process once the model is loaded.

    Raises BenchError where the model does not load.
    """
    told = {
        "family": spec.family,
        "path": spec.path,
        "task": spec.task,
        "load_options": dict(spec.load_options),
        "session_options": dict(spec.session_options),
        "families": list(families),
    }
    with Measured(["-m", "antiphon.validation.libraries", json.dumps(told)]) as process:
        line = process.wait_for(lambda said: said.startswith(_WORD))
    modules = set(line.removeprefix(_WORD).split())
    packages = {name for module, names in packages_distributions().items() if module in modules for name in names}
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: version(name) for name in sorted(packages | {"antiphon"})},
    }


def file_facts(path: Path) -> tuple[FileFact, ...]:
    """Every file of a model with its SHA-256; of a model that is one file also those whose names begin with its own."""
    if path.is_dir():
        folder, files = path, [it for it in path.rglob("*") if it.is_file()]
    else:
        folder, files = path.parent, [it for it in path.parent.glob(f"{path.name}*") if it.is_file()]
    return tuple(_fact(file, folder) for file in sorted(files))


def _fact(file: Path, folder: Path) -> FileFact:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileFact(str(file.relative_to(folder)), digest, file.stat().st_size)
