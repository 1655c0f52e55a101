"""A browser for the tests of one file, and a server with models that tests hold open."""

import pytest

from browser import chromium


@pytest.fixture(scope="module")
def browser():
    """Chromium. Not for the session: while it runs no coroutine can be run in the same thread."""
    with chromium() as it:
        yield it
