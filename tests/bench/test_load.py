"""The client of a measurement reads what our servers answer, and takes nothing else for an answer."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from antiphon.bench.errors import BenchError
from antiphon.bench.load import Connection

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno"


@pytest.fixture
def answered() -> Iterator[Callable[[bytes], Connection]]:
    """A connection to a peer that answers one request with these bytes, and then closes."""
    with ExitStack() as opened:

        def open_one(answer: bytes) -> Connection:
            listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve() -> None:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(len(REQUEST))
                    peer.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            opened.callback(thread.join)
            return opened.enter_context(Connection(f"http://127.0.0.1:{listener.getsockname()[1]}"))

        yield open_one


def test_a_call_returns_the_body(answered: Callable[[bytes], Connection]) -> None:
    assert answered(WHOLE).call(REQUEST) == b"hi"


def test_a_stream_has_begun_with_its_first_byte(answered: Callable[[bytes], Connection]) -> None:
    answered(CHUNKED + b"5\r\nh").begin(REQUEST)


@pytest.mark.parametrize("early", [b"", b"5\r\n"])
def test_a_head_is_no_beginning(answered: Callable[[bytes], Connection], early: bytes) -> None:
    with pytest.raises(BenchError, match="closed"):
        answered(CHUNKED + early).begin(REQUEST)


@pytest.mark.parametrize("answer", [WHOLE, REFUSED])
def test_what_does_not_stream_is_refused(answered: Callable[[bytes], Connection], answer: bytes) -> None:
    with pytest.raises(BenchError, match="did not stream"):
        answered(answer).begin(REQUEST)


def test_a_refusal_is_no_answer(answered: Callable[[bytes], Connection]) -> None:
    with pytest.raises(BenchError, match="refused: no"):
        answered(REFUSED).call(REQUEST)
