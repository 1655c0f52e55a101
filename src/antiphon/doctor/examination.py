"""One examination of an installation, from the machine up to the address; what each look means the others know."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from antiphon.config import ServerConfig, build_config
from antiphon.doctor import machine
from antiphon.doctor.diagnosis import Diagnosis, fail
from antiphon.doctor.engines import engines, installed_points
from antiphon.doctor.models import models_root, packages
from antiphon.doctor.serving import address, configured, journal, listeners, model
from antiphon.packages import default_models_root
from antiphon.runtime.control_groups import ControlGroups
from antiphon.runtime.discovery import AdapterFinder, make_adapter
from antiphon.runtime.inspection import Inspector
from antiphon.service.voice_library import VoiceLibrary

Look: TypeAlias = Callable[[], Diagnosis | Iterator[Diagnosis]]


@dataclass(frozen=True, slots=True)
class Order:
    """What `antiphon serve` would be started with. Without a file it serves all models of the models root."""

    config: Path | None = None
    models_root: Path | None = None
    api_keys: Sequence[str] | None = field(default=None, repr=False)
    admin_keys: Sequence[str] | None = field(default=None, repr=False)
    families: tuple[str, ...] = ()
    parallel_jobs: bool = False


def examine(order: Order) -> Iterator[Diagnosis]:
    """Look at one thing after another. A look that breaks is a diagnosis, too, and the others go on.

    Raises ConfigError for a family of the order that cannot be imported.
    """
    finder = AdapterFinder(order.families)
    keys = order.api_keys, order.admin_keys
    told, config = configured(order.config, order.models_root, *keys, parallel_jobs=order.parallel_jobs)
    served = config or build_config({}, source="the defaults", base=Path.cwd(), parallel_jobs=order.parallel_jobs)
    root = order.models_root or (Path(served.models_root) if served.models_root else default_models_root())
    library = VoiceLibrary(served.voice_dir)
    with Inspector(finder.target) as inspector:
        models = [model(it, inspector, library, parallel_jobs=order.parallel_jobs) for it in served.registrations()]
    groups, needed_bytes = ControlGroups(), _needed_bytes([size_bytes for _, size_bytes in models], served)
    looks: list[tuple[str, Look]] = [
        ("python", machine.python),
        ("processors", partial(machine.processors, groups)),
        ("memory", partial(machine.memory, groups, needed_bytes)),
        ("open files", partial(machine.descriptors, served)),
        ("temporary files", partial(machine.temporary_files, served)),
        ("locale", machine.locale),
        ("engines", partial(engines, _families(order, served), installed_points())),
        ("models root", partial(models_root, root)),
        ("packages", partial(packages, root)),
        ("configuration", lambda: told),
        ("models", lambda: (diagnosis for diagnosis, _ in models)),
    ]
    if config is not None:
        looks += [
            ("journal", partial(journal, config)),
            ("listeners", partial(listeners, config)),
            ("address", partial(address, config)),
        ]
    for subject, look in looks:
        yield from _looked(subject, look)


def _looked(subject: str, look: Look) -> Iterator[Diagnosis]:
    try:
        found = look()
        yield from [found] if isinstance(found, Diagnosis) else found
    except Exception as error:  # noqa: BLE001 (this edge owns the outcome: it is a diagnosis)
        yield fail(subject, f"cannot be looked at: {type(error).__name__}: {error}", "tell the authors of antiphon")


def _families(order: Order, config: ServerConfig) -> frozenset[str]:
    """The families in use that entry points must bring."""
    brought = {make_adapter(target).family for target in order.families}
    return frozenset(it.family for it in config.models if it.family not in brought)


def _needed_bytes(eager_bytes: Sequence[int], config: ServerConfig) -> int:
    """What the models take that are in memory together after the start, at most."""
    largest_first = sorted(eager_bytes, reverse=True)
    return sum(largest_first[: config.max_loaded_models or None])
