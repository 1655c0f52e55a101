"""One server a runtime for all tests of routes: they steer it for the length of a test and leave it as it was."""

import pytest

from controlled_server import controlled_server
from speakers_server import speakers_server


@pytest.fixture(scope="session")
def parallel_server(tmp_path_factory):
    """Two slots a model; clients may manage, and may name files below `clips`."""
    folder = tmp_path_factory.mktemp("parallel")
    (folder / "clips").mkdir()
    with controlled_server(folder, parallel=True, ui_management=True, allowed_audio_roots=["clips"]) as server:
        yield server


@pytest.fixture(scope="session")
def serial_server(tmp_path_factory):
    """One session a model; clients may not manage."""
    with controlled_server(tmp_path_factory.mktemp("serial"), parallel=False) as server:
        yield server


@pytest.fixture(params=["parallel", "serial"])
def server(request):
    """Each of the two runtimes."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture(scope="session")
def speakers(tmp_path_factory):
    """The models `heard`, `told`, `noticed` and `spoken`, of one slot each."""
    with speakers_server(tmp_path_factory.mktemp("speakers")) as server:
        yield server
