"""What the machine, or the container, gives to a server; what is installed on it is not looked at here."""

import os
import platform
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import psutil

from antiphon.config import ServerConfig, usable_cores
from antiphon.doctor.diagnosis import Diagnosis, fail, ok, warn
from antiphon.runtime.control_groups import ControlGroups
from antiphon.runtime.memory import SystemMemory

_OLDEST_PYTHON = (3, 11)
_MIB = 1024 * 1024


def python() -> Diagnosis:
    """The interpreter, and where it is."""
    said = f"{platform.python_implementation()} {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _OLDEST_PYTHON:
        return fail("python", said, "antiphon needs Python 3.11 or newer")
    return ok("python", said)


def processors(groups: ControlGroups) -> Diagnosis:
    """The cores that it may run on, and how much of their time it gets: engines start a thread for each core."""
    usable, quota = usable_cores(), groups.processors()
    said = f"{usable} of {os.cpu_count()} cores usable"
    if quota is None or quota >= usable:
        return ok("processors", said)
    return warn(
        "processors",
        f"{said}, and the time of {quota:g} of them",
        "engines start a thread for each usable core: give the server whole cores (AllowedCPUs=, --cpuset-cpus), or set"
        " `threads` and `slots` of each model to fit",
    )


def memory(groups: ControlGroups, needed_bytes: int) -> Diagnosis:
    """What is free, against what the models that are to be loaded need, about."""
    available_bytes, limit_bytes = SystemMemory().available_bytes(), groups.memory_limit_bytes()
    limited = "" if limit_bytes is None else f", limited to {_mib(limit_bytes)} by a control group"
    said = f"{_mib(available_bytes)} free of {_mib(psutil.virtual_memory().total)}{limited}"
    if needed_bytes <= available_bytes:
        return ok("memory", f"{said}; the models need about {_mib(needed_bytes)}")
    return warn(
        "memory",
        f"{said}, and the models need about {_mib(needed_bytes)}",
        "set max_loaded_models and min_free_memory_mb, so that idle models make room, or serve fewer models",
    )


def descriptors(config: ServerConfig) -> Diagnosis:
    """The hard limit of open files, to which a server raises its soft one, against the connections that it may have."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return ok("open files", "no limit")
    most_connections = limit // 2  # as bootstrap.peer_limits has it
    if config.max_connections <= most_connections:
        return ok("open files", f"{limit}, half of them for connections")
    return warn(
        "open files",
        f"{limit}, so that {most_connections} of {config.max_connections} connections are accepted",
        f"`ulimit -n {2 * config.max_connections}` before the start, LimitNOFILE= in a unit, or fewer max_connections",
    )


def temporary_files(config: ServerConfig) -> Diagnosis:
    """The folder where uploads and long audio grow, against what they may take together."""
    subject = "temporary files"
    try:
        folder = Path(tempfile.gettempdir())
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return fail(subject, str(error.strerror or error), "set TMPDIR to a folder that may be written")
    wanted_bytes = (config.max_pending_audio_mb + config.max_pending_body_mb) * _MIB
    said = f"{folder} has {_mib(free_bytes)} free{', in memory' if _is_in_memory(folder) else ''}"
    if free_bytes >= wanted_bytes:
        return ok(subject, said)
    return warn(
        subject,
        f"{said}, and uploads may take {_mib(wanted_bytes)}",
        "set TMPDIR to a larger folder, or lower max_pending_audio_mb and max_pending_body_mb",
    )


def locale() -> Diagnosis:
    """Whether paths of any script can be opened (CFG-04)."""
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return ok("locale", "paths of any script can be opened")
    return warn("locale", f"paths are written in {encoding}", "set LANG=C.UTF-8 or PYTHONUTF8=1, and unset LC_ALL")


def _is_in_memory(folder: Path) -> bool:
    """Whether the folder's file system is one of the memory: what lies there is missing elsewhere."""
    real = folder.resolve()
    mounts = {Path(it.mountpoint): it.fstype for it in psutil.disk_partitions(all=True)}
    return next((mounts[it] for it in (real, *real.parents) if it in mounts), "") in {"tmpfs", "ramfs"}


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:,.0f} MiB"
