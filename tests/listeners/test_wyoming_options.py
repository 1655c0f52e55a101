"""What a Wyoming listener can be told, and whom it would let in: all of it is settled before the server listens."""

import socket
import sys

import pytest

from antiphon.listeners.kinds import make_listener
from antiphon.ports.listener import HouseRules, Listener
from antiphon.vocabulary.errors import ConfigError

NO_RULES = HouseRules()
KEYS = HouseRules(api_keys=("right", "other"))
ANYWHERE = "tcp://0.0.0.0:0"


def made(options=None, rules=NO_RULES):
    return make_listener("wyoming", options or {}, rules)


def address_of(listener):
    try:
        return listener.open()
    finally:
        listener.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "x"}, "unknown field `model`"),
        ({"max_text_chars": 0}, ">= 1 - at `$.max_text_chars`"),
        ({"max_audio_bytes": True}, "`int`, got `bool`"),
        ({"asr_model": ""}, "asr_model"),
        ({"uri": "tcp://127.0.0.1"}, "uri must be"),
        ({"uri": "tcp://127.0.0.1:99999"}, "uri must be"),
        ({"uri": "http://127.0.0.1:1"}, "uri must be"),
        ({"uri": "unix://w.sock"}, "uri must be"),
        ({"uri": "stdio://"}, "uri must be"),
    ],
)
def test_what_it_does_not_understand_is_one_line(options, said):
    with pytest.raises(ConfigError) as caught:
        made(options)
    assert said in caught.value.message
    assert caught.value.message.startswith(("listeners: wyoming: ", "wyoming: "))
    assert "\n" not in caught.value.message


def test_it_listens_on_this_machine_alone_unless_it_is_told_otherwise():
    listener = made({"uri": "tcp://127.0.0.1:0"})
    assert isinstance(listener, Listener)
    assert address_of(listener).startswith("wyoming at tcp://127.0.0.1:")


def test_an_address_that_others_can_reach_is_refused():
    listener = made({"uri": ANYWHERE})
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0 can be reached from other machines.*--insecure"):
        listener.open()


def test_a_key_does_not_open_an_address_that_others_can_reach():
    listener = made({"uri": ANYWHERE, "api_key": "right"}, KEYS)
    with pytest.raises(ConfigError, match="--insecure"):
        listener.open()


def test_an_insecure_server_listens_anywhere():
    assert address_of(made({"uri": ANYWHERE}, HouseRules(insecure=True))).startswith("wyoming at tcp://0.0.0.0:")


def test_a_socket_file_needs_no_leave(tmp_path):
    path = tmp_path / "w.sock"
    assert address_of(made({"uri": f"unix://{path}"})) == f"wyoming at unix://{path}"
    assert not path.exists()


def test_a_port_that_is_taken_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as other:
        listener = made({"uri": f"tcp://127.0.0.1:{other.getsockname()[1]}"})
        with pytest.raises(ConfigError, match="cannot listen on"):
            listener.open()


@pytest.mark.parametrize("options", [{}, {"api_key": "wrong"}])
def test_a_server_with_keys_wants_one_of_them_from_its_listener(options):
    with pytest.raises(ConfigError, match="API keys") as caught:
        made(options, KEYS)
    assert "right" not in caught.value.message
    assert "wrong" not in caught.value.message


def test_one_of_the_servers_keys_will_do():
    assert made({"api_key": "other"}, KEYS)


def test_without_its_library_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "wyoming"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "wyoming", None)
    with pytest.raises(ConfigError, match=r"pip install 'antiphon\[wyoming\]'"):
        made()
