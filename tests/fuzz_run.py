"""The long run of a fuzzer, and one input again: `python tests/fuzz_run.py TARGET [--first SEED] [--count N]`.

It ends with the exit code 1 where it found something. docs/testing.md tells of the targets.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from fuzz_stage import TARGETS, Range, fuzz_range
from process_tree import processes_of

MIB = 1024 * 1024
EVERY = 500
"""After so many inputs it is looked at what they have left."""

MAY_GROW_BYTES = 8 * MIB
"""What all processes together may hold more at the end than after half of it: until then they have met the largest."""

_ENOUGH = 20


def main() -> int:
    """Fire, and tell what was found."""
    asked = _arguments()
    if asked.write is not None:
        asked.write.write_bytes(TARGETS[asked.target].shot_of(asked.first).data)
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, fuzz_range(Path(folder)) as fired_at:
        if asked.count == 1:
            print(fired_at.shoot(TARGETS[asked.target].shot_of(asked.first)).decode(errors="replace"))
        fired_at.stretch()
        return _fire(fired_at, asked.target, range(asked.first, asked.first + asked.count))


def _fire(fired_at: Range, target: str, seeds: range) -> int:
    found = 0
    sizes: list[int] = []
    for start in range(seeds.start, seeds.stop, EVERY):
        part = range(start, min(start + EVERY, seeds.stop))
        findings = fired_at.fire(target, part)
        for finding in findings:
            print(f"FOUND {target}: {finding}", flush=True)
        found += len(findings)
        sizes.append(fired_at.standing().allocated_bytes)
        each = [f"{it.memory_full_info().pss / MIB:.0f}" for it in processes_of(fired_at.server)]
        print(f"{target} {part.start} to {part.stop - 1}: {sizes[-1] / MIB:.1f} MiB ({' '.join(each)})", flush=True)
        if found >= _ENOUGH:
            break
    seconds, slowest = fired_at.slowest[target]
    grown = sizes[-1] - sizes[len(sizes) // 2]
    print(f"{target}: answers began with {dict(fired_at.told[target].most_common())}")
    print(f"{target}: {found} findings; grown by {grown / MIB:.1f} MiB; the slowest, {slowest}, took {seconds:.2f} s")
    if grown > MAY_GROW_BYTES:
        print(f"FOUND {target}: memory grows: {[round(it / MIB, 1) for it in sizes]}")
    return int(found > 0 or grown > MAY_GROW_BYTES)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fire damaged input at a server, and look what becomes of it.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first input, or the only one")
    parser.add_argument("--count", type=int, default=20_000, help="how many inputs; with 1 the answer is shown")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the first input into a file, and send nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
