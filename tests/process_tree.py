"""What a server and all its processes hold: memory and descriptors. It asserts nothing."""

from pathlib import Path

import psutil

from server_process import ServerProcess


def processes_of(server: ServerProcess) -> list[psutil.Process]:
    """The server, and whatever it has started that has not been buried.

    The process that inspects models is left out: it ends by itself once it has had nothing to do for a while.
    """
    root = psutil.Process(server.process.pid)
    return [root, *workers_of(server.process.pid)]


def workers_of(pid: int) -> list[psutil.Process]:
    """The processes that a server of this number has started, but for the one that inspects models."""
    return [it for it in psutil.Process(pid).children(recursive=True) if not _inspects(it)]


def _inspects(process: psutil.Process) -> bool:
    try:
        return "antiphon.worker.inspection" in process.cmdline()
    except psutil.ZombieProcess:
        return False  # dead and not buried: tests look for those
    except psutil.NoSuchProcess:
        return True  # it has just ended, and nothing else does by itself


def allocated_bytes(server: ServerProcess) -> int:
    """What all of them together have allocated. Unlike their proportional set size it does not change with others."""
    return sum(anonymous_bytes(server))


def anonymous_bytes(server: ServerProcess) -> list[int]:
    """What each of them has allocated, without the files that are mapped: those are shared with whoever else runs, too.

    Source: proc(5), Pss_Anon of smaps_rollup.
    """
    rollups = [Path(f"/proc/{process.pid}/smaps_rollup").read_text() for process in processes_of(server)]
    lines = [next(line for line in text.splitlines() if line.startswith("Pss_Anon:")) for text in rollups]
    return [int(line.split()[1]) * 1024 for line in lines]


def descriptor_counts(server: ServerProcess) -> dict[int, int]:
    """The open descriptors of each process, by its number."""
    return {process.pid: process.num_fds() for process in processes_of(server)}


def peak_bytes(pid: int) -> int:
    """The most that a process has had in memory at once, pages of files included. Source: proc(5), VmHWM."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
