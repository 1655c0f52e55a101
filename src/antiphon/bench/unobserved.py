"""The server that one that counts and logs its requests is held against: the same, but for that.

It runs as a process of its own, `python -m antiphon.bench.unobserved CONFIG`.
"""

import asyncio
import sys
from pathlib import Path

from antiphon.runtime.permanent import permanent_imports

with permanent_imports():  # as `antiphon serve` does: what is collected, and how often, must be alike
    import uvloop

    from antiphon.bench.null import TARGET
    from antiphon.bootstrap import assemble, serve
    from antiphon.config import load_config
    from antiphon.runtime.discovery import AdapterFinder
    from antiphon.runtime.signals import StopSignals


def _announce(url: str) -> None:
    sys.stderr.write(f"unobserved is listening on {url}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    config = load_config(Path(sys.argv[1]), parallel_jobs=True)
    with StopSignals() as signals, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assembly = assemble(config, AdapterFinder([TARGET]), parallel_jobs=True, observed=False)
        runner.run(serve(assembly, _announce, signals))
