"""The core stays pure: what its modules may import and say is read from their source, and nothing else is allowed."""

import ast
from pathlib import Path

import pytest

import antiphon

ROOT = Path(antiphon.__file__).parent
STDLIB = frozenset(
    {
        "bisect",
        "collections",
        "collections.abc",
        "dataclasses",
        "enum",
        "fractions",
        "heapq",
        "itertools",
        "math",
        "typing",
    }
)
"""Modules that compute: none of them knows the time, a thread, a file or another process."""
ALSO_IN_VOCABULARY = frozenset({"mmap", "re", "sys", "tempfile"})
"""The vocabulary may hold memory, in a file where it is large (spool.py)."""
FORBIDDEN_NAMES = frozenset({"Any", "cast", "print", "open", "input", "eval", "exec", "__import__", "breakpoint"})
CORE = ("admission", "residency", "transcripts")


def faults(source: str, package: str) -> list[str]:
    """What in this source the package may not say, one line each; empty where it is pure."""
    stdlib = STDLIB | (ALSO_IN_VOCABULARY if package == "vocabulary" else frozenset())
    own = ("antiphon.vocabulary", f"antiphon.{package}")
    found = [f"line {at}: type: ignore" for at, line in enumerate(source.splitlines(), 1) if "type: ignore" in line]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                imported = [it.name for it in names]
                found += [f"line {node.lineno}: from typing, by name" for it in names if it.name == "typing"]
            case ast.ImportFrom(module, names, level):
                imported = ["." * level + (module or "")]
                found += [f"line {node.lineno}: {it.name}" for it in names if it.name in FORBIDDEN_NAMES]
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                found.append(f"line {node.lineno}: a coroutine")
                continue
            case ast.comprehension(iter=iterated, is_async=1):
                found.append(f"line {iterated.lineno}: a coroutine")
                continue
            case ast.Name(name) if name in FORBIDDEN_NAMES:
                found.append(f"line {node.lineno}: {name}")
                continue
            case ast.Global() | ast.Nonlocal():
                found.append(f"line {node.lineno}: shared state")
                continue
            case _:
                continue
        found += [
            f"line {node.lineno}: import {name}"
            for name in imported
            if name not in stdlib and not any(name == it or name.startswith(f"{it}.") for it in own)
        ]
    return found


def modules(*packages: str) -> list[Path]:
    """The source files of these packages."""
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def test_there_is_something_to_look_at() -> None:
    assert {path.stem for path in modules(*CORE)} >= {
        "gate",
        "policy",
        "scheduler",
        "lifecycle",
        "registry",
        "eviction",
        "idle",
        "estimates",
    }


@pytest.mark.parametrize("path", modules(*CORE, "vocabulary"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_core_module_is_pure(path: Path) -> None:
    assert faults(path.read_text(), path.relative_to(ROOT).parts[0]) == []


@pytest.mark.parametrize(
    "offender",
    [
        "import time",
        "import os.path",
        "import threading as collections",
        "from asyncio import Lock",
        "import logging",
        "import numpy as np",
        "import collections, random",
        "def late() -> None:\n    from datetime import datetime",
        "from antiphon.runtime import api",
        "from antiphon.residency.registry import Entry",
        "from antiphon import residency",
        "from . import gate",
        "from antiphon.vocabulary_extras import thing",
        "async def wait() -> None: ...",
        "async_items = [x async for x in y]",
        "from typing import Any",
        "import typing\nx: typing.Any = 1",
        "from typing import cast",
        "x = 1  # type: ignore[assignment]",
        "print('hello')",
        "open('file')",
        "__import__('time')",
        "count = 0\ndef bump() -> None:\n    global count",
    ],
)
def test_an_offender_is_found(offender: str) -> None:
    assert faults(offender, "admission")


@pytest.mark.parametrize(
    "innocent",
    [
        "import heapq\nfrom collections.abc import Iterable",
        "from antiphon.vocabulary.states import Operation\nfrom antiphon.admission.gate import Gate",
        "import math as time",
        "def now(now: float) -> float:\n    return now",
    ],
)
def test_the_innocent_are_left_alone(innocent: str) -> None:
    assert faults(innocent, "admission") == []


def test_what_the_vocabulary_may_import_the_core_may_not() -> None:
    assert faults("import tempfile", "vocabulary") == []
    assert faults("import tempfile", "admission") == ["line 1: import tempfile"]
