"""WebSocket clients for real servers: they wait as long as anything in the suite may take. They know no route.

The library's own limits of 10 and 20 seconds are too short where several tests share two cores.
"""

import ssl

from websockets.asyncio.client import connect as connect_on_the_loop
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_with_threads
from websockets.sync.client import unix_connect as unix_connect_with_threads

from server_process import HANG_GUARD_S

PATIENCE = {"open_timeout": HANG_GUARD_S, "close_timeout": HANG_GUARD_S, "ping_timeout": HANG_GUARD_S}
"""The library's options, for those who have it called by another one."""


def connect(url: str, **options: object) -> ClientConnection:
    """Open one; the options are those of `websockets.sync.client.connect`. For TLS see `connect_over_tls`."""
    return connect_with_threads(url, **PATIENCE, **options)


def unix_connect(path: str, url: str) -> ClientConnection:
    """Open one on a Unix socket."""
    return unix_connect_with_threads(path, url, **PATIENCE)


def connect_over_tls(url: str, context: ssl.SSLContext) -> connect_on_the_loop:
    """Open one over TLS, for `async with`.

    The client with threads reads and writes one TLS session at the same time, which OpenSSL does not allow: now and
    then its request is never sent.
    """
    return connect_on_the_loop(url, ssl=context, **PATIENCE)
