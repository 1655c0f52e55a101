"""Which tests stay together where several processes share the suite. It knows nothing of what they test."""

from functools import cache

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_VARIED = "/conformance/"
"""Where no test of a file needs the others, and each runs in many variants."""

_LONG = (
    "/scaling/test_two_nodes.py",
    "/isolation/test_memory.py",
    "/simulation/test_simulation.py",
    "/engines/test_engine_suites.py",
    "/core/test_exploration.py",
    "/conformance/test_rules_parity.py",
    "/validation/test_piper_validation.py",
    "/engines/test_piper_engine.py",
    "/e2e/test_concurrent.py",
    "/e2e/test_live_speech.py",
    "/http/test_every_answer.py",
    "/e2e/test_bad_audio.py",
    "/docs/test_curl_examples.py",
    "/e2e/test_openai_client.py",
    "/e2e/test_two_of_each.py",
    "/e2e/test_two_voices.py",
    "/engines/test_oneshot_commands.py",
    "/engines/test_piper_ending.py",
    "/engines/test_whisper_engine.py",
    "/fuzz/test_targets.py",
    "/isolation/test_chaos.py",
    "/engines/test_memory_estimates.py",
    "/engines/test_real_recordings.py",
    "/engines/test_import_hygiene.py",
)
"""What takes longest for its number of tests, the longest first: begun last, it would leave the others idle."""


def share_of(nodeid: str) -> str:
    """What is named alike runs in one process.

    That is a file: what it starts for its tests is started once, and what they reach is seen. The conformance suite
    takes most of the time, so it is cut finer: a file's tests of one variant, which share their servers.
    """
    file, _, test = nodeid.partition("::")
    return f"{file}[{test.partition('[')[2]}" if _VARIED in f"/{file}" else file


@cache
def place_of(share: str) -> int:
    """How many of those that take long come before a share."""
    return next((place for place, file in enumerate(_LONG) if file in f"/{share}"), len(_LONG))


class SharedSuite(LoadScopeScheduling):
    """Hands the shares out: those that take long, then those of most tests."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=place_of), last=False)
        super()._assign_work_unit(node)
