"""Two nodes of Ray on this machine, as a program: it says their address, and ends them when its input ends.

A process of its own: Ray's warnings are not ours, and whatever becomes of the tests, its nodes end.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ADDRESS = "nodes are at "


@contextmanager
def two_nodes(environment: Mapping[str, str]) -> Iterator[str]:
    """Run two nodes for the length of the block; the value is the address of their cluster."""
    command = [sys.executable, str(Path(__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if line.startswith(ADDRESS)), None)
            assert said is not None, "the nodes did not start"
            yield said.removeprefix(ADDRESS).strip()
        finally:
            process.stdin.close()
            process.wait()


def main() -> None:
    """Be the two nodes, with the agents of an installation without Ray's dashboard.

    A node gives up when a whole agent has not found its ports in 15 s, which it does not where others use the machine.
    Source: github.com/ray-project/ray, issue 65983.
    """
    import ray._private.utils
    from ray.cluster_utils import Cluster

    ray._private.utils.get_dashboard_dependency_error = lambda: ImportError("not wanted")

    node = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024, "include_dashboard": False}
    # A short path: there are sockets in it.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        (Path(folder) / "ray").mkdir()  # where Ray keeps the cluster's address, and takes the folder to be there
        cluster = Cluster(initialize_head=True, connect=False, head_node_args=node)
        try:
            cluster.add_node(**node)
            print(ADDRESS + cluster.address, flush=True)
            sys.stdin.read()
        finally:
            cluster.shutdown()


if __name__ == "__main__":
    main()
