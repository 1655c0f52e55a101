"""Where a case gets its processes from: it starts them, and ends them all with the case."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from antiphon.bench.direct import READY, DirectWork
from antiphon.bench.errors import NotInstalledError
from antiphon.bench.load import drive
from antiphon.bench.null import FAMILY as NULL_FAMILY
from antiphon.bench.null import TARGET as NULL_TARGET
from antiphon.bench.processes import Measured, wait_for_url
from antiphon.bench.sides import ServerSide
from antiphon.packages import InstalledModel, installed_registrations
from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.states import Isolation


@dataclass(frozen=True, slots=True)
class Scale:
    """How much work one turn is. Units: numbers of requests, cycles, sentences and clips."""

    noop_requests: int = 2000
    gate_cycles: int = 20_000
    sentences: int = 8
    clips: int = 4


FULL = Scale()
QUICK = Scale(noop_requests=200, gate_cycles=2000, sentences=2, clips=2)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and its base URL."""

    process: Measured
    url: str

    def warm_side(self, name: str, requests: Sequence[bytes], clients: int) -> ServerSide:
        """A side whose model is in memory, every slot of it used once."""
        drive(self.url, list(requests[:1]) * clients, clients)
        return ServerSide(name, self.process, self.url, requests, clients)


class Lab:
    """The processes and files of one case; use it as a context manager."""

    def __init__(self, models_root: Path, scale: Scale) -> None:
        self.scale = scale
        self._models_root = models_root
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(TemporaryDirectory(prefix="antiphon-bench-")))
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def another(self) -> "Lab":
        """One more lab, for processes that end before those of this one."""
        return Lab(self._models_root, self.scale)

    def installed(self, family: str) -> InstalledModel:
        """The smallest installed model of a family; raises NotInstalledError."""
        models = [it for it in installed_registrations(self._models_root) if it.family == family]
        if not models:
            raise NotInstalledError(f"no {family} model is installed in {self._models_root}")
        try:
            AdapterFinder().find(family)
        except ConfigError as error:
            raise NotInstalledError(error.message) from error
        return min(models, key=lambda model: _size_bytes(model.path))

    def serve_arguments(
        self, models: Sequence[Mapping[str, object]], *, parallel: bool, isolation: Isolation = Isolation.THREAD
    ) -> list[str]:
        """The command of a server with these models, on a free port; in threads all its processor time is its own."""
        config = self._configuration(models, isolation)
        flags = ["--parallel-jobs"] if parallel else []
        return ["-m", "antiphon", "serve", "--config", str(config), "--family", NULL_TARGET, *flags]

    def serve(
        self,
        models: Sequence[Mapping[str, object]],
        *,
        parallel: bool,
        isolation: Isolation = Isolation.THREAD,
        flags: Sequence[str] = (),
    ) -> Server:
        """Start a server, with further flags."""
        return self._started([*self.serve_arguments(models, parallel=parallel, isolation=isolation), *flags])

    def serve_unobserved(self, models: Sequence[Mapping[str, object]]) -> Server:
        """Start one of several slots a model that counts and logs no request."""
        return self._started(["-m", "antiphon.bench.unobserved", str(self._configuration(models, Isolation.THREAD))])

    def null_model(self) -> dict[str, object]:
        """The configuration of a model that does nothing."""
        return {"id": "null", "family": NULL_FAMILY, "task": "tts", "path": str(self._folder)}

    def bare(self) -> Server:
        """Start the bare route."""
        return self._started(["-m", "antiphon.bench.bare"])

    def direct(self, work: DirectWork) -> Measured:
        """Load an engine in a process without a server."""
        file = self.file("work.json", work.to_json().encode())
        process = self._open.enter_context(Measured(["-m", "antiphon.bench.direct", str(file)]))
        process.wait_for(lambda line: line == READY)
        return process

    def file(self, name: str, content: bytes) -> Path:
        """Keep a file for the length of the case."""
        self._files += 1
        path = self._folder / f"{self._files}-{name}"
        path.write_bytes(content)
        return path

    def _configuration(self, models: Sequence[Mapping[str, object]], isolation: Isolation) -> Path:
        settings = {"port": 0, "isolation": isolation, "models": list(models)}
        return self.file("server.json", json.dumps(settings).encode())

    def _started(self, arguments: Sequence[str]) -> Server:
        process = self._open.enter_context(Measured(arguments))
        return Server(process, wait_for_url(process))


def configured(model: InstalledModel, model_id: str | None = None) -> dict[str, object]:
    """An installed model as a configuration has it, under its own name or another."""
    return {
        "id": model_id or model.id,
        "family": model.family,
        "task": str(model.task),
        "mode": str(model.mode),
        "path": str(model.path),
    }


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
