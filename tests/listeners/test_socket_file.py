"""A socket file is made for its owner, taken over from a dead server only, and gone afterwards."""

import os
import socket
import stat

import pytest

from antiphon.listeners.socket_file import SocketFile
from antiphon.vocabulary.errors import ConfigError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.sock"


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        SocketFile(str(path))
    assert caught.value.message.isprintable()
    return caught.value.message


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def test_it_listens_for_its_owner_alone_and_leaves_nothing(path):
    before = os.umask(0)
    try:
        made = SocketFile(str(path))
    finally:
        os.umask(before)
    assert can_connect(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    made.close()
    assert not path.exists()


def test_the_socket_of_a_dead_server_is_replaced(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    made = SocketFile(str(path))
    assert can_connect(path)
    made.close()


@pytest.mark.parametrize("queue", [0, 8], ids=["full", "open"])
def test_the_socket_of_a_server_that_lives_is_an_error(path, queue):
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as first:
        other.bind(str(path))
        other.listen(queue)
        first.connect(str(path))
        assert refusal(path) == f"cannot listen on '{path}': another server does"
        assert path.exists()


@pytest.mark.parametrize(
    "make", [lambda path: path.touch(), lambda path: path.mkdir(), lambda path: path.symlink_to("b")]
)
def test_another_file_is_left_alone(path, make):
    make(path)
    assert refusal(path) == f"cannot listen on '{path}': another file is there"
    assert path.is_symlink() or path.exists()


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    assert refusal(tmp_path / "none" / "a.sock").endswith("No such file or directory")


def test_a_path_that_is_too_long_for_the_kernel_is_an_error(tmp_path):
    assert refusal(tmp_path / ("x" * 120)).endswith("AF_UNIX path too long")


def test_the_file_of_a_successor_is_not_removed(path):
    first = SocketFile(str(path))
    path.unlink()
    second = SocketFile(str(path))
    first.close()
    assert can_connect(path)
    second.close()
    second.close()
    assert not path.exists()
