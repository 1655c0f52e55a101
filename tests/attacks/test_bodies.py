"""Bodies that never end, come by the dozen, or cost more than they weigh."""

import json
import threading
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from antiphon.http.multipart import SPILL_BYTES
from siege import MIB, besieged, head_of, read_answer, send_all_that_fits

ATTACKERS = 8
TRANSCRIPTIONS = "/v1/audio/transcriptions"
JSON = "content-type: application/json"
BOUNDARY = "edge"
FORM = f"content-type: multipart/form-data; boundary={BOUNDARY}"
FILE = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
    + b"R" * (SPILL_BYTES + 1)
    + b"\r\n"
)


def all_at_once(attack, count=ATTACKERS):
    """Run the attack in threads until all have sent what they can."""
    threads = [threading.Thread(target=attack) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def unfinished(siege, held, head, content, size_bytes):
    """Send all but the last byte of a body, and keep the connection."""
    peer = held.enter_context(siege.connect())
    send_all_that_fits(peer, head)
    for _ in range(size_bytes // len(content)):
        send_all_that_fits(peer, content)


def test_json_bodies_without_an_end_hold_no_more_than_the_budget(tmp_path):
    size_bytes = 24 * MIB  # within the limit of one
    head = head_of("POST", TRANSCRIPTIONS, JSON, f"content-length: {size_bytes + 1}") + b'{"model":"asr","audio":"'
    with (
        besieged(tmp_path, max_pending_body_mb=48) as siege,
        ExitStack() as held,
        siege.watched(max_growth_bytes=64 * MIB),
    ):
        all_at_once(lambda: unfinished(siege, held, head, b"A" * MIB, size_bytes - MIB))


def test_a_json_body_over_its_own_limit_is_refused_before_it_comes(tmp_path):
    with besieged(tmp_path) as siege, siege.connect() as peer, siege.watched(max_growth_bytes=8 * MIB):
        peer.sendall(head_of("POST", TRANSCRIPTIONS, JSON, f"content-length: {500 * MIB}"))
        status, error = read_answer(peer)
    assert (status, error["code"]) == (413, "too_large")
    assert "33554432 bytes" in error["message"]


def test_forms_without_an_end_fill_no_more_of_the_disk_than_the_budget(tmp_path):
    size_bytes = 64 * MIB
    head = head_of("POST", TRANSCRIPTIONS, FORM, f"content-length: {size_bytes + len(FILE)}") + FILE[:-2]
    with (
        besieged(tmp_path, max_pending_body_mb=100) as siege,
        ExitStack() as held,
        siege.watched(max_growth_bytes=48 * MIB),
    ):
        all_at_once(lambda: unfinished(siege, held, head, b"R" * MIB, size_bytes), count=6)
        assert 50 * MIB < kept_bytes(siege.process.process.pid) <= 101 * MIB


def test_a_form_holds_one_open_file(tmp_path):
    head = head_of("POST", TRANSCRIPTIONS, FORM, f"content-length: {10 * len(FILE)}")
    with besieged(tmp_path) as siege, ExitStack() as held, siege.watched(max_growth_bytes=48 * MIB):
        process = psutil.Process(siege.process.process.pid)
        before = process.num_fds()
        for _ in range(10):
            peer = held.enter_context(siege.connect())
            send_all_that_fits(peer, head + FILE + FILE)
            status, error = read_answer(peer)
            assert (status, error["param"]) == (400, "file")
        assert process.num_fds() <= before + 10 + 4  # the connections, and those of the pulse


@pytest.mark.parametrize("field", ["model", "language", "voice", "response_format", "options"])
def test_an_error_repeats_little_of_what_was_sent(tmp_path, field):
    long = "A" * (8 * MIB)
    body = {"model": "tts", "input": "a", field: {long: 1} if field == "options" else long}
    content = json.dumps(body).encode()
    with besieged(tmp_path) as siege, siege.watched(max_growth_bytes=64 * MIB), siege.connect() as peer:
        head = head_of("POST", "/v1/audio/speech", JSON, f"content-length: {len(content)}")
        peer.sendall(head + content)
        status, error = read_answer(peer)
    assert 400 <= status < 500
    assert len(json.dumps(error)) < 2048
    assert siege.process.log.stat().st_size < 16 * 1024


def kept_bytes(pid):
    """What a process keeps in files without a name."""
    files = [it for it in Path(f"/proc/{pid}/fd").iterdir() if "(deleted)" in str(it.readlink())]
    return sum(it.stat().st_size for it in files)
