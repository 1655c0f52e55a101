"""Loads one model three times and prints what each load added to its own process: run as a program, it asserts nothing.

`python weighed_loads.py FAMILY TASK PATH SLOTS` answers {"estimate": bytes, "grown": [bytes, ...]} on one line.
"""

import asyncio
import json
import sys

from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.memory import SystemMemory
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task


async def main(family: str, task: str, path: str, slots: str) -> None:
    spec, meter = ModelSpec("weighed", family, path, Task(task), slots=int(slots)), SystemMemory()
    adapter = AdapterFinder().find(family)
    weights, grown = [], []
    for _ in range(3):
        before = await meter.resident_bytes()
        weights.append(adapter.load(spec))
        primary = weights[-1].open_session()
        weights += [primary, *(primary.clone() for _ in range(spec.slots - 1))]
        grown.append(await meter.resident_bytes() - before)
    print(json.dumps({"estimate": adapter.inspect(spec).weight_bytes, "grown": grown}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
