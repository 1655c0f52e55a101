"""Each test serves a small application on a loopback socket, with the clock in its hand."""

import ssl

import pytest

from antiphon.ports.listener import PeerLimits
from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
from listening_stage import ListeningStage
from tls_files import TlsFiles


@pytest.fixture
def limits():
    """What the server keeps; a test that wants other limits is parametrized with them."""
    return PeerLimits(header_timeout_s=10, body_timeout_s=20, send_timeout_s=30, keep_alive_s=5)


@pytest.fixture
def stage(limits):
    return ListeningStage(limits)


@pytest.fixture
def files(tmp_path):
    return TlsFiles(tmp_path)


@pytest.fixture
def tls_stage(limits, files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files.certificate())
    return ListeningStage(limits, context)
