"""Servers for the listener's tests: one that they share and leave idle, and others that a test may stop."""

from contextlib import ExitStack
from itertools import count

import pytest

from conformance_server import CONFIGURATIONS, ISOLATIONS, SharedServers, start_server

SLOTS = 2
ISOLATION = next(iter(ISOLATIONS))


@pytest.fixture(scope="session")
def shared_servers(tmp_path_factory):
    servers = SharedServers(tmp_path_factory.mktemp("listener"))
    yield servers
    servers.close()


@pytest.fixture
def server(shared_servers):
    """The shared server: two slots a model, and clients may manage."""
    server = shared_servers.get("default", slots=SLOTS, isolation=ISOLATION)
    yield server
    server.settle()


@pytest.fixture
def serve(tmp_path):
    """`serve(slots=..., models={...}, **settings)`: a server of the test's own, which must end with the exit code 0."""
    numbers = count(1)
    with ExitStack() as ends:

        def start(*, slots=SLOTS, models=None, **settings):
            configuration = CONFIGURATIONS["default"].with_settings(settings)
            folder = tmp_path / f"server{next(numbers)}"
            server = start_server(folder, configuration, slots=slots, isolation=ISOLATION, models=models)
            ends.callback(server.close)
            ends.callback(_let_go, server)
            return server

        yield start


def _let_go(server):
    """Hold nothing any more, so that a server that was told to stop can, and one that was not can be told."""
    for model in server.models:
        model.unhold()
    for opened in server.client.open_calls:
        opened.cut()
