"""Servers for what antiphon promises beyond the contract: one of its own for each test, with two slots a model."""

from contextlib import ExitStack

import pytest

from conformance_server import CONFIGURATIONS, start_server

SLOTS = 2


@pytest.fixture
def slots():
    """How many slots a model has that does not say."""
    return SLOTS


@pytest.fixture
def fresh_server(tmp_path, slots):
    """`fresh_server(name, models={...}, **settings)`: a server of the test's own. It may be killed."""
    with ExitStack() as ends:

        def start(name="default", *, models=None, **settings):
            configuration = CONFIGURATIONS[name].with_settings(settings)
            server = start_server(tmp_path / name, configuration, slots=slots, isolation="thread", models=models)
            ends.callback(server.close)
            ends.callback(server.settle)
            return server

        yield start


@pytest.fixture
def server(fresh_server):
    """A server with the defaults."""
    return fresh_server()
