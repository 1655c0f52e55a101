"""Peers by the hundred that send slowly, stop in the middle or do not read: they cost no slot and keep nobody waiting.

Each test names in a comment a mutant that it kills.
"""

import json
from contextlib import ExitStack, closing

import httpx
import pytest

from audio_assets import tone, wav_bytes
from conformance_client import eventually
from conformance_evidence import answers
from conformance_situations import fill
from listener_peers import (
    TASK_RUN,
    UNREAD_ITEMS,
    connect,
    head,
    json_request,
    leave,
    non_reader,
    read_to_end,
    stalled_body,
    stalled_head,
    stalled_upload,
    unread_batch,
)
from listener_stop import wait_disconnected
from refusals import assert_unharmed
from server_process import HANG_GUARD_S

HUNDRED = 100
NON_READERS = 10
"""Each of these costs the kernel 4 MB."""

FORM = "multipart/form-data; boundary=edge"
MIB = 1024 * 1024


def upload(url, *parts, content_type=FORM, length=None, **fields):
    """A whole upload to the transcriptions."""
    body = b"".join(parts)
    length = len(body) if length is None else length
    target = "/v1/audio/transcriptions"
    return head(url, "POST", target, Content_Type=content_type, Content_Length=length, **fields) + body


def field(name, value):
    return f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


def file(content):
    disposition = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    return disposition + content + b"\r\n--edge--\r\n"


def exchange(url, *sent):
    """Send everything, then read until the server closes."""
    with closing(connect(url)) as peer:
        for piece in sent:
            peer.sendall(piece)
        return read_to_end(peer)


def error_of(answer):
    """The error that an answer's body tells."""
    head_, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head_
    content = json.loads(body)
    assert list(content) == ["error"]
    assert set(content["error"]) == {"message", "type", "param", "code"}
    return content["error"]


def assert_fit(server, model):
    """The server serves on as if nothing had been."""
    with httpx.Client(base_url=server.process.url, timeout=HANG_GUARD_S) as client:
        assert_unharmed(server.process, client, lambda: model.infer("next").result())


@pytest.fixture
def crowd():
    """The peers of a test; they leave at its end."""
    with ExitStack() as ends:

        def add(make, count, *arguments):
            peers = [make(*arguments) for _ in range(count)]
            for peer in peers:
                ends.callback(leave, peer, reset=True)
            return peers

        yield add


@pytest.mark.parametrize("kind", ["heads", "bodies", "uploads", "non-readers"])
def test_a_hundred_hostile_peers_cost_no_slot(server, crowd, kind):
    # Mutants: a slot is leased before the body is whole; a worker of the server waits for a peer.
    model, url = server.new_model(), server.process.url
    match kind:
        case "heads":
            peers = crowd(stalled_head, HUNDRED, url)
        case "bodies":
            peers = crowd(stalled_body, HUNDRED, url, model.id)
        case "uploads":
            peers = crowd(stalled_upload, HUNDRED, url)
        case _:
            peers = crowd(non_reader, NON_READERS, url)

    with model.checkpoint.held("run"):
        calls, texts = fill(model, server.slots, queued=1)  # all slots are to be had, and the queue moves
        assert server.client.call("GET", "/health").status_code == 200
    assert [it.text for it in answers(calls)] == texts
    for number, peer in enumerate(peers):  # a byte each: they are slow, not silent
        if kind in ("heads", "bodies"):
            peer.sendall(b" ")
        if number % 10 == 0:
            assert server.client.call("GET", "/health").status_code == 200
    assert answers([model.infer("meanwhile")])[0].text == "meanwhile"
    assert model.status()["leases"] == []


def test_a_stream_that_nobody_reads_gives_its_slot_back(serve):
    # Mutant: `send` waits for its reader without a bound.
    server = serve(send_timeout_ms=200)
    model = server.new_model()
    unread = [unread_batch(server.process.url, model.id) for _ in range(server.slots)]

    assert answers([model.infer("behind them")])[0].text == "behind them"

    for peer in unread:
        leave(peer)
    assert len(model.runs()) < UNREAD_ITEMS * server.slots


@pytest.mark.parametrize("make", [stalled_head, stalled_body, stalled_upload])
def test_a_peer_that_stalls_is_let_go(serve, make):
    # Mutants: the timer of the head starts anew with each byte; a stalled body has no timer.
    server = serve(header_timeout_ms=200, body_timeout_ms=200)
    model = server.new_model()
    peer = make(server.process.url, *([model.id] if make is stalled_body else []))
    with closing(peer):
        port = peer.getsockname()[1]
        answer = read_to_end(peer)
        wait_disconnected(server.process, port)
    if answer:
        assert answer.startswith(b"HTTP/1.1 408")
        assert error_of(answer)["code"] == "request_timeout"
    assert_fit(server, model)


def test_a_cut_body_runs_nothing(server):
    # Mutant: a body that ends early is taken for whole. (DIS-06)
    model = server.new_model(task="asr")
    whole = upload(server.process.url, field("model", model.id), file(wav_bytes(tone(440, 0.5))))
    with closing(connect(server.process.url)) as peer:
        port = peer.getsockname()[1]
        peer.sendall(whole[: len(whole) // 2])
    wait_disconnected(server.process, port)
    assert model.runs() == []
    assert_fit(server, server.new_model())


def test_a_body_that_claims_ten_gigabytes_is_refused_readably(server):
    # Mutant: the declared length is believed only when it has come. (DIS-06)
    answer = exchange(server.process.url, upload(server.process.url, b"--edge\r\n", length=10_000_000_000))
    assert answer.startswith(b"HTTP/1.1 413")
    assert error_of(answer)["code"] == "too_large"


@pytest.mark.parametrize("length", ["-1", "1e3", "+5", "9" * 40])
def test_a_length_that_is_no_number_is_refused(server, length):
    # Mutant: `send_400_response` is uvicorn's. (DIS-06)
    answer = exchange(server.process.url, upload(server.process.url, b"--edge", length=length, Connection="close"))
    assert answer.startswith(b"HTTP/1.1 4")
    assert error_of(answer)["type"] == "invalid_request_error"


def test_two_requests_in_one_packet_are_answered_in_their_order(server):
    # Mutant: the second request of a packet is dropped. (DIS-06)
    model, url = server.new_model(), server.process.url
    first = json_request(url, TASK_RUN, {"model": model.id, "request": {"text": "first"}})
    second = json_request(url, TASK_RUN, {"model": model.id, "request": {"text": "second"}}, Connection="close")
    answer = exchange(url, first + second)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"|first") < answer.index(b"|second")


def test_a_client_that_sends_two_requests_at_once_and_leaves_gets_neither_run(server):
    # Mutant: only the latest request of a connection is told that its client has left. (DIS-01)
    model, url = server.new_model(), server.process.url
    with model.checkpoint.held("run"):
        calls, texts = fill(model, server.slots)
        peer = connect(url)
        peer.sendall(json_request(url, TASK_RUN, {"model": model.id, "request": {"text": "left"}}) * 2)
        model.wait_queue("infer")
        leave(peer)
        model.wait_queue()
    assert [it.text for it in answers(calls)] == texts
    assert sorted(model.runs()) == sorted(texts)


def test_thirty_large_bodies_on_one_connection_are_all_answered(server):
    # Mutant: a connection is closed after a body over the high-water mark. (DIS-06)
    model, url = server.new_model(task="asr"), server.process.url
    one = upload(url, field("model", model.id), file(wav_bytes(tone(440, 20.0))))
    last = upload(url, field("model", model.id), file(wav_bytes(tone(440, 20.0))), Connection="close")
    assert len(one) > MIB // 2
    with closing(connect(url)) as peer:
        for _ in range(29):
            peer.sendall(one)
        peer.sendall(last)
        answer = read_to_end(peer)
    assert answer.count(b"HTTP/1.1 200") == 30
    assert len(model.runs()) == 30


def test_a_slow_upload_holds_no_slot_and_is_served(server):
    # Mutant: the slot is leased when the head is there. (DIS-06)
    model, url = server.new_model(task="asr"), server.process.url
    whole = upload(url, field("model", model.id), file(wav_bytes(tone(440, 0.2))), Connection="close")
    step = len(whole) // 50
    with closing(connect(url)) as peer:
        for start in range(0, len(whole), step):
            assert model.status()["leases"] == []
            peer.sendall(whole[start : start + step])
        answer = read_to_end(peer)
    assert answer.startswith(b"HTTP/1.1 200")


FORMS = {
    "no boundary": lambda url: upload(url, b"--edge\r\n", content_type="multipart/form-data", Connection="close"),
    "no last boundary": lambda url: upload(url, field("model", "m"), file(b"RIFF")[:-12], Connection="close"),
    "bare line feeds": lambda url: upload(url, field("model", "m").replace(b"\r\n", b"\n"), Connection="close"),
    "json": lambda url: upload(url, b'{"model":', content_type="application/json", Connection="close"),
    "urlencoded": lambda url: upload(
        url, b"a=" + b"x" * 5 * MIB, content_type="application/x-www-form-urlencoded", Connection="close"
    ),
    "2000 fields": lambda url: upload(url, *[field(f"f{n}", "x") for n in range(2000)], file(b""), Connection="close"),
    "a field of 5 MB": lambda url: upload(url, field("prompt", "x" * 5 * MIB), file(b""), Connection="close"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_malformed_form_is_refused_in_our_shape(server, form):
    # Mutant: a fault of the form's parser is a 500. (DIS-07)
    answer = exchange(server.process.url, FORMS[form](server.process.url))
    assert answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert error_of(answer)["type"] == "invalid_request_error"
    assert_fit(server, server.new_model())


def test_connections_over_the_limit_are_refused_and_the_others_served(serve):
    # Mutant: `max_connections` is not looked at.
    server = serve(max_connections=HUNDRED // 2, header_timeout_ms=0)
    model = server.new_model()
    peers = [stalled_head(server.process.url) for _ in range(HUNDRED)]
    refused = eventually(lambda: [it for it in peers if _is_over(it)], lambda it: len(it) >= HUNDRED // 2, "refusals")
    assert len(refused) < HUNDRED
    assert answers([model.infer("beside them")])[0].text == "beside them"
    for peer in peers:
        leave(peer)
    assert_fit(server, model)


def _is_over(peer):
    """Whether the server has answered or closed."""
    peer.setblocking(False)
    try:
        peer.recv(1, 2)  # MSG_PEEK
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True
