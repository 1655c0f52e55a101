"""Very many tiny pieces: frames of a WebSocket, messages of a session, chunks of a body, headers."""

import threading
from contextlib import ExitStack

import pytest

from siege import MIB, besieged, head_of, send_all_that_fits

COUNT = 20_000
SOCKET = head_of(
    "GET",
    "/v1/realtime?model=asr",
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
)


def frame(first_byte, content=b""):
    """A frame of a client, with a mask that changes nothing."""
    return bytes([first_byte, 0x80 | len(content)]) + bytes(4) + content


FLOODS = {
    "pings": frame(0x89) * COUNT,
    "pongs": frame(0x8A) * COUNT,
    "continuations": frame(0x01) + frame(0x00) * COUNT,
    "empty texts": frame(0x81) * COUNT,
    "events of no kind": frame(0x81, b"{}") * COUNT,
    "clears": frame(0x81, b'{"type":"input_audio_buffer.clear"}') * (COUNT // 4),
}


@pytest.mark.parametrize("sockets", [1, 12])
@pytest.mark.parametrize("flood", FLOODS)
def test_tiny_frames_do_not_stop_the_loop(tmp_path, flood, sockets):
    with besieged(tmp_path) as siege, ExitStack() as held:
        peers = [held.enter_context(siege.connect()) for _ in range(sockets)]
        for peer in peers:
            peer.sendall(SOCKET)
            assert peer.recv(12) == b"HTTP/1.1 101"
        with siege.watched(max_growth_bytes=24 * MIB):
            send_at_once(peers, FLOODS[flood])


@pytest.mark.parametrize(
    ("head", "flood"),
    [
        (head_of("POST", "/v1/audio/transcriptions", "transfer-encoding: chunked"), b"1\r\nA\r\n" * COUNT * 2),
        (head_of("GET", "/health")[:-2], b"a:b\r\n" * COUNT * 2),
        (
            head_of("POST", "/v1/audio/transcriptions/live?model=asr", "transfer-encoding: chunked"),
            b"1\r\nA\r\n" * COUNT,
        ),
    ],
    ids=["chunks", "headers", "live chunks"],
)
def test_tiny_pieces_of_a_request_do_not_stop_the_loop(tmp_path, head, flood):
    with besieged(tmp_path) as siege, ExitStack() as held:
        peers = [held.enter_context(siege.connect()) for _ in range(8)]
        with siege.watched(max_growth_bytes=32 * MIB, serves="live" not in head.decode()):
            send_at_once(peers, head + flood)


def send_at_once(peers, data):
    """Have each send all of it, as far as the server reads it within a second and a half."""
    for peer in peers:
        peer.settimeout(1.5)
    threads = [threading.Thread(target=send_all_that_fits, args=(peer, data)) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
