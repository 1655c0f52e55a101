"""Which tests stay together where several processes share the suite. It knows nothing of what they test."""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_VARIED = "/conformance/"
"""Where no test of a file needs the others, and each runs in many variants."""

_LONG = (
    "/simulation/test_simulation.py",
    "/core/test_exploration.py",
    "/isolation/test_memory.py",
    "/e2e/test_concurrent.py",
    "/e2e/test_two_voices.py",
    "/conformance/test_rules_parity.py",
    "/fuzz/test_targets.py",
    "/scaling/test_two_nodes.py",
)
"""What has few tests and takes long: begun last, it would leave one process at work and the others idle."""


def share_of(nodeid: str) -> str:
    """What is named alike runs in one process.

    That is a file: what it starts for its tests is started once, and what they reach is seen. The conformance suite
    takes most of the time, so it is cut finer: a file's tests of one variant, which share their servers.
    """
    file, _, test = nodeid.partition("::")
    return f"{file}[{test.partition('[')[2]}" if _VARIED in f"/{file}" else file


def is_long(share: str) -> bool:
    """Whether a share is to be begun before the others."""
    return any(file in f"/{share}" for file in _LONG)


class SharedSuite(LoadScopeScheduling):
    """Hands the shares out: those that take long, then those of most tests."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = next(filter(is_long, self.workqueue), None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
