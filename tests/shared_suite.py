"""Which tests stay together where several processes share the suite. It knows nothing of what they test."""

from xdist.scheduler import LoadScopeScheduling

_VARIED = "/conformance/"
"""Where no test of a file needs the others, and each runs in many variants."""


def share_of(nodeid: str) -> str:
    """What is named alike runs in one process.

    That is a file: what it starts for its tests is started once, and what they reach is seen. The conformance suite
    takes most of the time, so it is cut finer: a file's tests of one variant, which share their servers.
    """
    file, _, test = nodeid.partition("::")
    return f"{file}[{test.partition('[')[2]}" if _VARIED in f"/{file}" else file


class SharedSuite(LoadScopeScheduling):
    """Hands the shares out, those of most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)
