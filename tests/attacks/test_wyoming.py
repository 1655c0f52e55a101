"""Very many tiny events of a Wyoming peer."""

import socket
from contextlib import closing

import httpx
import pytest

from server_process import HANG_GUARD_S
from siege import MIB, Siege, send_all_that_fits
from wyoming_stage import raw_event, wyoming_server

BEGIN = raw_event("synthesize-start")
FLOODS = {
    "spaces": BEGIN + raw_event("synthesize-chunk", data={"text": " "}) * 20_000,
    "signs": BEGIN + raw_event("synthesize-chunk", data={"text": "a"}) * 20_000,
    "space behind much space": BEGIN
    + raw_event("synthesize-chunk", data={"text": " " * 50_000})
    + raw_event("synthesize-chunk", data={"text": " "}) * 10_000,
    "pings": raw_event("ping", data={"text": "x"}) * 20_000,
    "events of no kind": raw_event("zzz") * 40_000,
    "descriptions": raw_event("describe") * 5_000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_tiny_events_do_not_stop_the_loop(tmp_path, flood):
    with wyoming_server(tmp_path, tcp=True) as server, closing(connection_to(server.uri)) as peer:
        siege = Siege(
            server.process.url,
            server.process,
            lambda: httpx.get(f"{server.process.url}/v1/models", timeout=HANG_GUARD_S),
        )
        with siege.watched(max_growth_bytes=24 * MIB):
            send_all_that_fits(peer, FLOODS[flood])


def connection_to(uri):
    host, port = uri.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=1.5)
