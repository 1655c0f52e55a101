"""Servers for what antiphon promises beyond the contract, with two slots a model."""

from contextlib import ExitStack

import pytest

from conformance_server import CONFIGURATIONS, start_server

SLOTS = 2


@pytest.fixture
def slots():
    """How many slots a model has that does not say."""
    return SLOTS


@pytest.fixture(scope="session")
def running_servers():
    """The servers that tests share, each by its configuration."""
    servers = {}
    yield servers
    with ExitStack() as ends:
        for server in servers.values():
            ends.callback(server.close)


@pytest.fixture
def lent_server(running_servers, tmp_path_factory):
    """`lent_server(name, **settings)`: a server of this configuration without a model that is loaded.

    What a test makes in it is unloaded again, so that limits count for the next test from nothing.
    """
    lent = []

    def lend(name="default", **settings):
        key = (name, *sorted(settings.items()))
        server = running_servers.get(key)
        if server is None or not server.alive:
            configuration = CONFIGURATIONS[name].with_settings(settings)
            folder = tmp_path_factory.mktemp(name)
            server = running_servers[key] = start_server(folder, configuration, slots=SLOTS, isolation="thread")
        lent.append(server)
        return server

    yield lend
    with ExitStack() as ends:
        for server in lent:
            ends.callback(server.settle)


@pytest.fixture
def server(lent_server):
    """A server with the defaults."""
    return lent_server()


@pytest.fixture
def cold_model():
    """`cold_model(server, **fields)`: a model that is registered and was never loaded, as far as its events tell."""

    def make(server, **fields):
        model = server.new_model(loaded=False, **fields)
        (model.checkpoint.path / "events.jsonl").unlink()
        return model

    return make
