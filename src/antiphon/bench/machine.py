"""What the numbers were measured on: without it they say little."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from antiphon.config import usable_cores

_PACKAGES = (
    "antiphon",
    "fastapi",
    "starlette",
    "uvicorn",
    "uvloop",
    "httptools",
    "pydantic",
    "numpy",
    "onnxruntime",
    "piper-tts",
    "ctranslate2",
    "faster-whisper",
)


def machine_facts() -> dict[str, str]:
    """Names and values, in the order in which they are shown."""
    facts = {
        "processor": f"{processor_name()}, {usable_cores()} of {os.cpu_count()} cores usable",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def processor_name() -> str:
    """What the processor calls itself."""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
