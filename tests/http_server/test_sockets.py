"""Where a server is bound: the address is resolved first, and its zone is kept."""

import socket

import pytest

from antiphon.bootstrap import bind_as_allowed
from antiphon.config import build_config
from antiphon.http.server import bind, resolve
from antiphon.vocabulary.errors import ConfigError


def test_a_link_local_address_keeps_its_zone():
    assert resolve("fe80::1%lo", 8080).sockaddr == ("fe80::1", 8080, 0, socket.if_nametoindex("lo"))


def test_a_link_local_address_is_bound_with_its_zone():
    # No interface of the loopback kind has such an address. Without its zone it would not even be a valid one.
    with pytest.raises(ConfigError, match=r"cannot listen on fe80::1%lo port 0: .*Cannot assign requested address"):
        bind("fe80::1%lo", 0)


def test_an_open_server_without_a_key_is_refused_before_its_address_is_taken(tmp_path):
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        config = build_config({"host": "0.0.0.0", "port": port}, source="test", base=tmp_path, parallel_jobs=False)
        with pytest.raises(ConfigError, match="no API key is set"):  # and not that the port is taken
            bind_as_allowed(config)
