"""Runs mutants: `make mutants`, or `python tests/mutants/run.py --help`.

Each is applied in a copy of `src` of its own, which comes first on the path of the tests and of every process that they
start. The selections are run once without a change first: a test that fails anyway kills nothing.
"""

import argparse
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.listing import ROOT, Mutant, load_mutants

LIMIT_S = 240
"""How long the tests of one mutant may take; a hang counts as noticed, as a test suite that hangs is."""

HANG_GUARD_S = "10"
"""Many mutants have a call wait for ever, so the tests wait for less time than usual, also those without a change."""

_NOTICED = (1, 2)
"""Exit codes of pytest: a test failed, or its modules cannot be imported any more."""


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    HUNG = "killed (the tests hung)"
    SURVIVED = "SURVIVED"
    NOT_TRIED = "NOT TRIED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A mutant's verdict. Units: `took_s` seconds. `output` is the end of what the tests printed."""

    mutant: Mutant
    verdict: Verdict
    took_s: float
    output: str = ""


def run_mutant(mutant: Mutant) -> Outcome:
    """Apply a mutant in a copy, and run each of its tests against that; every one of them must fail."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, copy_function=os.link, ignore=shutil.ignore_patterns("__pycache__"))
        target = Path(folder) / mutant.file
        changed = mutant.applied_to(target.read_text())
        target.unlink()  # it is a link to the file itself
        target.write_text(changed)
        verdict, output = Verdict.KILLED, ""
        for test in mutant.kills:
            code, output = run_tests([test], mutant.select, source)
            if code is None:
                verdict = Verdict.HUNG
            elif code not in _NOTICED:
                verdict = Verdict.NOT_TRIED if code else Verdict.SURVIVED
                break
    return Outcome(mutant, verdict, time.monotonic() - began, output)


def run_tests(tests: Sequence[str], select: str, source: Path | None = None) -> tuple[int | None, str]:
    """Run tests, against the code in `source` if it is given; pytest's exit code, None at the limit, and its output."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "ANTIPHON_HANG_GUARD_S": HANG_GUARD_S}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    command += ["-k", select] if select else []
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(LIMIT_S)
        with suppress(ProcessLookupError):  # whatever the tests have left, or at the limit all of it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")[-3000:]


def main() -> int:
    """Run the mutants that are asked for; 0 if each was killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="PATTERN", default="*", help="names or cells, as a shell pattern")
    parser.add_argument("--file", metavar="PATTERN", default="*", help="the changed file, as a shell pattern")
    parser.add_argument("--list", action="store_true", help="name them and run nothing")
    parser.add_argument("-n", "--workers", type=int, default=2, help="how many to run at once (default: 2)")
    arguments = parser.parse_args()
    pattern = arguments.only
    chosen = [
        it
        for it in load_mutants()
        if any(fnmatch.fnmatch(name, pattern) for name in (it.name, *it.cells))
        and fnmatch.fnmatch(it.file, arguments.file)
    ]
    if arguments.list:
        for mutant in chosen:
            print(f"{mutant.name}  [{mutant.file}]  {', '.join(mutant.cells)}")
        return 0
    began = time.monotonic()
    with ThreadPoolExecutor(arguments.workers) as threads:
        healthy = _check_unchanged(chosen, threads)
        outcomes = list(_reported(threads.map(run_mutant, chosen), len(chosen)))
    missed = [it for it in outcomes if it.verdict in (Verdict.SURVIVED, Verdict.NOT_TRIED)]
    for outcome in missed:
        print(f"\n{outcome.mutant.name}: {outcome.verdict}\n{outcome.output}")
    killed, minutes = len(outcomes) - len(missed), (time.monotonic() - began) / 60
    print(f"\n{killed} of {len(outcomes)} mutants were killed, in {minutes:.1f} min")
    return 0 if healthy and not missed else 1


def _check_unchanged(mutants: Sequence[Mutant], threads: ThreadPoolExecutor) -> bool:
    selections = list(dict.fromkeys((test, mutant.select) for mutant in mutants for test in mutant.kills))
    print(f"{len(selections)} selections of tests without a change", flush=True)
    healthy = True
    for (test, select), (code, output) in zip(
        selections, threads.map(lambda it: run_tests([it[0]], it[1]), selections), strict=True
    ):
        if code != 0:
            healthy = False
            print(f"{test} -k {select!r} fails without a change (exit code {code}):\n{output}", flush=True)
    return healthy


def _reported(outcomes: Iterator[Outcome], count: int) -> Iterator[Outcome]:
    for number, outcome in enumerate(outcomes, start=1):
        print(f"{number:4}/{count} {outcome.took_s:6.1f} s  {outcome.verdict:24} {outcome.mutant.name}", flush=True)
        yield outcome


if __name__ == "__main__":
    sys.exit(main())
