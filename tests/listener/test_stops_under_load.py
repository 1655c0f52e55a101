"""Stop signals at random moments under mixed load: the exit code is 0, nobody is left in doubt, and nothing is left.

ANTIPHON_STOPS in the environment says how often; each stop has a seed of its own, which is its number.
"""

import os
import random

import pytest

from listener_stop import assert_ended, begin_stop
from listener_traffic import CLOSED, REFUSED, WHOLE, Traffic

STOPS = int(os.environ.get("ANTIPHON_STOPS", "8"))
MOST_CALLS = 60
"""The latest moment of a stop: so many calls have ended by then."""

LONGER_THAN_ALL_WORK_MS = 600_000


@pytest.mark.parametrize("seed", range(STOPS))
def test_a_stop_under_load_leaves_nobody_in_doubt_and_nothing_behind(serve, seed):
    # Mutants: the stop cancels tasks; the listener returns before its responses are sent; SIGTERM is raised again;
    # a late request on a kept connection is admitted and then cut off.
    server = serve(drain_timeout_ms=LONGER_THAN_ALL_WORK_MS)
    warm, cold = server.new_model(), server.new_model(loaded=False)
    for checkpoint in (warm.checkpoint, cold.checkpoint):
        for step, ms in {"run": "10", "stream": "5", "load": "30", "destroy": "5"}.items():
            checkpoint.set(f"{step}.ms", ms)
    traffic = Traffic(server.process.url, warm, cold, seed)
    moment = random.Random(seed).randrange(MOST_CALLS)

    with traffic.flowing():
        traffic.wait_for(moment)
        begin_stop(server.process)

    assert_ended(server.process)
    assert {it.end for it in traffic.outcomes} <= {WHOLE, REFUSED, CLOSED}
    begun = {*warm.runs(), *cold.runs()}
    for outcome in traffic.outcomes:  # what was accepted was served, and what was not never began
        assert begun.isdisjoint(outcome.order.texts) or outcome.end == WHOLE, outcome
    for model in (warm, cold):
        assert model.checkpoint.events()[-1].step == "closed"
