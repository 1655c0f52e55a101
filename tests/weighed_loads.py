"""Loads one model three times and prints what each load added to its own process: run as a program, it asserts nothing.

`python weighed_loads.py FAMILY TASK PATH SLOTS` answers {"estimate": bytes, "grown": [bytes, ...]} on one line. What
grows is the resident set size: unlike the proportional one it does not depend on who else maps the same libraries.
"""

import json
import sys

import psutil

from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task


def main(family: str, task: str, path: str, slots: str) -> None:
    spec, process = ModelSpec("weighed", family, path, Task(task), slots=int(slots)), psutil.Process()
    adapter = AdapterFinder().find(family)
    weights, grown = [], []
    for _ in range(3):
        before = process.memory_info().rss
        weights.append(adapter.load(spec))
        primary = weights[-1].open_session()
        weights += [primary, *(primary.clone() for _ in range(spec.slots - 1))]
        grown.append(process.memory_info().rss - before)
    print(json.dumps({"estimate": adapter.inspect(spec).weight_bytes, "grown": grown}))


if __name__ == "__main__":
    main(*sys.argv[1:])
