"""Bodies that never end, grow without a bound, or cost more than they weigh."""

from contextlib import ExitStack

from siege import MIB, besieged, head_of


def test_bodies_that_never_end_hold_no_more_than_the_budget(tmp_path):
    with besieged(tmp_path) as siege, ExitStack() as held, siege.watched(max_growth_bytes=16 * MIB):
        for _ in range(20):
            held.enter_context(siege.connect()).sendall(head_of("POST", "/v1/audio/speech", "content-length: 100000"))
