"""Connections that say nothing, where TLS is spoken."""

from contextlib import ExitStack

import httpx
import psutil

from controlled_server import controlled_server
from server_process import HANG_GUARD_S
from siege import MIB, Siege
from tls_files import TlsFiles

LIMIT = 20
TOLD = 64
"""So many more are accepted in order to be told that they are too many."""


def test_peers_that_never_begin_a_handshake_take_no_more_than_the_limit(tmp_path):
    files = TlsFiles(tmp_path)
    cert, key = files.certificate()
    config = {"max_connections": LIMIT, "tls_cert": str(cert), "tls_key": str(key)}
    with (
        controlled_server(tmp_path, parallel=False, **config) as server,
        httpx.Client(base_url=server.process.url, verify=files.client(), timeout=HANG_GUARD_S) as client,
        ExitStack() as held,
    ):
        siege = Siege(server.process.url, server.process, lambda: client.get("/health"))
        assert siege.serve().status_code == 200  # on a connection that it keeps
        before = psutil.Process(server.process.process.pid).num_fds()
        with siege.watched(max_growth_bytes=32 * MIB, kinds={"kept"}):
            for _ in range(500):
                held.enter_context(siege.connect())
        assert psutil.Process(server.process.process.pid).num_fds() <= before + LIMIT + TOLD + 1
    assert "Traceback" not in server.process.log.read_text()
