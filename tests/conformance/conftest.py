"""What conformance tests are given: slots, an isolation, servers. docs/testing-conformance.md explains it."""

from contextlib import ExitStack

import pytest

from conformance_cells import ISOLATIONS
from conformance_plugin import ONCE_SLOTS
from conformance_server import SharedServers
from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)


@pytest.fixture
def slots():
    """How many slots a model has in this run of the test; the plugin sets it from the cell."""
    return ONCE_SLOTS


@pytest.fixture
def isolation():
    """Where the engines run in this run of the test; the plugin sets it."""
    return next(iter(ISOLATIONS))


@pytest.fixture(scope="session")
def shared_servers(tmp_path_factory):
    servers = SharedServers(tmp_path_factory.mktemp("conformance"))
    yield servers
    servers.close()


@pytest.fixture
def shared_server(shared_servers, slots, isolation):
    """`shared_server(name)`: the server of a named configuration that all tests share; it is left empty and idle."""
    lent = {}

    def get(name):
        if name not in lent:
            lent[name] = shared_servers.get(name, slots=slots, isolation=isolation)
        return lent[name]

    yield get
    with ExitStack() as ends:  # each is settled, whatever becomes of the others
        for server in lent.values():
            ends.callback(server.settle)


@pytest.fixture
def server(shared_server):
    """The shared server of the default configuration."""
    return shared_server("default")


def settle_unless_stopped(server):
    """A test of the shutdown stops its server itself."""
    if server.alive or server.process.process.returncode != 0:
        server.settle()


@pytest.fixture
def fresh_server(shared_servers, slots, isolation):
    """`fresh_server(name, models={...}, **settings)`: a server of the test's own. It may be killed."""
    with ExitStack() as ends:

        def start(name="default", *, models=None, **settings):
            server = shared_servers.start(name, slots=slots, isolation=isolation, models=models, settings=settings)
            ends.callback(server.close)
            ends.callback(settle_unless_stopped, server)
            return server

        yield start
