"""The installed engines: whether what a family needs is there, in the right version, and can be imported at all.

Each is imported in a process of its own: a library that was built for another processor ends the process.
"""

import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    entry_points,
    packages_distributions,
    version,
)

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from antiphon.config import usable_cores
from antiphon.doctor.diagnosis import Diagnosis, fail, ok, warn
from antiphon.runtime.discovery import GROUP, make_adapter
from antiphon.vocabulary.errors import ConfigError

_IMPORT_TIMEOUT_S = 120.0


def installed_points() -> Iterable[EntryPoint]:
    """The entry points that name families, in this installation."""
    return entry_points(group=GROUP)


def engines(used: Collection[str], points: Iterable[EntryPoint]) -> Iterator[Diagnosis]:
    """Every family that an entry point names; what is wrong with one that is not `used` hinders nobody.

    Besides, the families that are used and that nobody brings.
    """
    points = sorted(points, key=lambda point: point.name)
    yield from _named_twice(points)
    with ThreadPoolExecutor(usable_cores()) as threads:
        yield from threads.map(partial(engine, used=used), points)
    for family in sorted(set(used) - {point.name for point in points}):
        known = ", ".join(point.name for point in points)
        yield fail(f"engine {family}", "there is no such family", f"install its adapter; there are {known}")


def engine(point: EntryPoint, used: Collection[str]) -> Diagnosis:
    """One family: its adapter, and what the extra of its name asks for."""
    subject = f"engine {point.name}"
    is_used = point.name in used
    bad = fail if is_used else warn
    try:
        make_adapter(point.value)
    except ConfigError as error:
        return bad(subject, error.message, f"install {_owner(point)} anew")
    wanted = list(_requirements(point))
    lacking = [fault for fault in map(_lack, wanted) if fault]
    if lacking:
        install = f"pip install 'antiphon[{canonicalize_name(point.name)}]'"
        absent = all(_version(it) is None for it in wanted)
        if absent and not is_used:
            return ok(subject, f"not installed ({install})")
        return bad(subject, "; ".join(lacking), install)
    found = ", ".join(f"{it.name} {_version(it)}" for it in wanted)
    fault = _import_fault(wanted)
    if fault is None:
        return ok(subject, found or "it needs nothing")
    return bad(subject, f"{found}: {fault}", "install it anew, for this Python and this processor")


def _named_twice(points: Iterable[EntryPoint]) -> Iterator[Diagnosis]:
    seen: dict[str, EntryPoint] = {}
    for point in points:
        first = seen.setdefault(point.name, point)
        if first is not point:
            said = f"both {first.value} and {point.value} say that they are it"
            yield warn(f"engine {point.name}", said, f"uninstall one of {_owner(first)} and {_owner(point)}")


def _requirements(point: EntryPoint) -> Iterator[Requirement]:
    """What the family's extra of its distribution asks for: the extra is named like the family."""
    extra = canonicalize_name(point.name)
    for text in (point.dist.requires if point.dist else None) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            yield requirement


def _lack(requirement: Requirement) -> str | None:
    found = _version(requirement)
    if found is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{requirement.name} is {found}, and {requirement.specifier} is wanted"
    return None


def _version(requirement: Requirement) -> str | None:
    try:
        return version(requirement.name)
    except PackageNotFoundError:
        return None


def _import_fault(requirements: Iterable[Requirement]) -> str | None:
    """Why the libraries cannot be imported together, in order; None where they can."""
    modules = _modules()
    names = [name for it in requirements for name in modules.get(canonicalize_name(it.name), ())]
    if not names:
        return None
    command = [sys.executable, "-c", f"import {', '.join(names)}"]
    try:
        done = subprocess.run(  # noqa: S603 (what was installed under these names)
            command, capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"its import has not ended after {_IMPORT_TIMEOUT_S:.0f} s"
    if done.returncode < 0:
        return f"its import ends the process ({signal.Signals(-done.returncode).name})"
    last_words = done.stderr.strip().splitlines() or ["it says nothing"]
    return f"it cannot be imported: {last_words[-1]}" if done.returncode else None


@cache
def _modules() -> Mapping[str, list[str]]:
    """The public top-level modules of each distribution."""
    found: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        if module.isidentifier() and not module.startswith("_"):
            for name in set(distributions):
                found.setdefault(canonicalize_name(name), []).append(module)
    return found


def _owner(point: EntryPoint) -> str:
    owner: Distribution | None = point.dist
    return owner.name if owner is not None else point.value
