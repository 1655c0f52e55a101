"""One connection that sends tiny requests faster than they are answered."""

import threading

from siege import MIB, besieged, send_all_that_fits

FLOOD = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n" * 9000


def test_a_pipeline_of_tiny_requests_takes_neither_the_memory_nor_the_loop(tmp_path):
    with besieged(tmp_path) as siege, siege.connect() as peer, siege.watched(max_growth_bytes=16 * MIB):
        reader = threading.Thread(target=read_to_the_end, args=(peer,))
        reader.start()
        for _ in range(3):
            send_all_that_fits(peer, FLOOD)
        peer.shutdown(1)
        reader.join()


def test_a_flood_behind_a_request_that_runs_is_not_read(tmp_path):
    with besieged(tmp_path) as siege, siege.watched(max_growth_bytes=16 * MIB):
        peers = [siege.connect() for _ in range(20)]
        for peer in peers:
            peer.settimeout(0.2)
            peer.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")  # which has no end
            assert peer.recv(12) == b"HTTP/1.1 200"
            for _ in range(8):
                send_all_that_fits(peer, FLOOD)
        for peer in peers:
            peer.close()


def read_to_the_end(peer):
    try:
        while peer.recv(MIB):
            pass
    except ConnectionError:
        pass
