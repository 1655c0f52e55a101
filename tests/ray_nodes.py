"""Two nodes of Ray on this machine, as a program: it says their address, and ends them when its input ends.

A process of its own: Ray's warnings are not ours, and whatever becomes of the tests, its nodes end.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

ADDRESS = "nodes are at "

_AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
"""Where a node is not told these, it gives up when its agents have not found some in 15 s: github.com/ray-project/ray,
issue 65983. A busy machine takes longer.
"""


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
    """Be the two nodes."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: there are sockets in it
    node = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, connect=False, head_node_args={**node, **_ports(), "temp_dir": folder})
    try:
        cluster.add_node(**node, **_ports())
        print(ADDRESS + cluster.address, flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _ports() -> dict[str, int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in _AGENT_PORTS]
        for it in sockets:
            it.bind(("", 0))
        return {name: it.getsockname()[1] for name, it in zip(_AGENT_PORTS, sockets, strict=True)}


if __name__ == "__main__":
    main()
