"""A wave is one only if all of it was out before any of it was answered, and the client can tell."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon.validation.client import HeldRequest, any_answered, ask
from antiphon.validation.errors import NoAnswer
from antiphon.validation.site import Entry, fresh_start
from antiphon.validation.waves import send_wave
from antiphon.vocabulary.tasks import Mode
from validation_stage import suspect

BODY = b'{"a": 1}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def peer(*, early: bool = False, answer: bytes = ANSWER) -> Iterator[str]:
    """One request's peer: answers when the last byte has come, or `early` with all but that one, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received = b""
                while BODY[:-1] not in received or (not early and BODY not in received):
                    received += connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_held_request_is_answered_once_it_is_let_go_of() -> None:
    with peer() as url, HeldRequest(url, "/", BODY) as request:
        assert not any_answered([request])
        request.let_go()
        assert request.answer().json() == {}


def test_an_answer_before_the_last_byte_is_noticed() -> None:
    with peer(early=True) as url, HeldRequest(url, "/", BODY) as request:
        while not any_answered([request]):  # it comes, though nothing was let go of
            pass


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"nonsense"])
def test_an_answer_that_is_not_whole_is_no_answer(answer: bytes) -> None:
    with peer(answer=answer) as url, HeldRequest(url, "/", BODY) as request:
        request.let_go()
        with pytest.raises(NoAnswer):
            request.answer()


def test_a_server_that_is_gone_gives_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(NoAnswer):
        ask(url, "/")


def test_a_wave_brings_every_answer_and_how_the_server_stood(tmp_path: Path) -> None:
    bodies = [json.dumps({"model": Entry.MODEL, "request": {"text": text}}).encode() for text in ("one", "two")]
    with fresh_start(suspect("SteadyAdapter", tmp_path), Mode.OFFLINE, 2) as site:
        wave = send_wave(site, Entry.MODEL, [("/v1/tasks/run", body) for body in bodies])
    assert [getattr(answer, "status", None) for answer in wave.answers] == [200, 200]
    assert wave.together
    assert wave.standings[0].active_slots == 2  # both wait for the load
