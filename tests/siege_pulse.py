"""Ask a server for `/health` again and again until stdin ends, then print how long each answer took, as JSON.

A program of its own, so that the interpreter lock of the attacking test is not in the way. What is measured is the
server's doing alone: the time that either of the two stood in the queue for a CPU is subtracted, or a machine that is
busy with other programs would look like a server that is held up. What the server's event loop computed meanwhile
counts in any case. Source of the figures: the kernel's Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat.
"""

import http.client
import json
import select
import ssl
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

INTERVAL_S = 0.02
PATIENCE_S = 30.0


def main(url: str, pid: str) -> None:
    connections = {"kept": connection_to(url), "fresh": connection_to(url)}
    loop_thread, own = Path(f"/proc/{pid}/task/{pid}/schedstat"), Path("/proc/self/schedstat")
    pulses: list[tuple[str, float]] = []
    while not select.select([sys.stdin], [], [], INTERVAL_S)[0]:
        for kind, connection in connections.items():
            began = time.perf_counter()
            ran, waited = scheduled(loop_thread)
            _, own_waited = scheduled(own)
            said = ask(connection)
            took = time.perf_counter() - began
            ran_now, waited_now = scheduled(loop_thread)
            _, own_waited_now = scheduled(own)
            queued = waited_now - waited + own_waited_now - own_waited
            pulses.append((f"{kind}: {said}", max(took - queued, ran_now - ran)))
            if said != "200" or kind == "fresh":
                connection.close()  # the next request opens it again
        if len(pulses) == len(connections):
            print("beats", flush=True)
    print(json.dumps(pulses))


def connection_to(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        trusting = ssl._create_unverified_context()  # the certificate is made by the test
        return http.client.HTTPSConnection(parts.netloc, timeout=PATIENCE_S, context=trusting)
    return http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)


def ask(connection: http.client.HTTPConnection) -> str:
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as fault:
        return type(fault).__name__
    return str(answer.status)


def scheduled(file: Path) -> tuple[float, float]:
    """How long a thread has run, and how long it has waited for a CPU, in seconds."""
    ran, waited, _ = file.read_text().split()
    return int(ran) / 1e9, int(waited) / 1e9


if __name__ == "__main__":
    main(*sys.argv[1:])
