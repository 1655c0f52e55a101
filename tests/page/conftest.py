"""A browser for the tests of one file, and a client of the server that the file has."""

import httpx
import pytest

from browser import chromium
from server_process import HANG_GUARD_S


@pytest.fixture(scope="module")
def browser():
    """Chromium. Not for the session: while it runs no coroutine can be run in the same thread."""
    with chromium() as it:
        yield it


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url, timeout=HANG_GUARD_S) as it:
        yield it
