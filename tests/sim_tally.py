"""Plays a block of seeds and counts what came of it: a module of its own, so that other processes can import it."""

import logging
from collections import Counter
from dataclasses import dataclass, field

from antiphon.observability.journal.replay import replay
from sim_history import draw
from sim_play import play


@dataclass
class Tally:
    """What a block of seeds came to."""

    failed: list[int] = field(default_factory=list)
    unlike: list[int] = field(default_factory=list)
    edges: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    answered: int = 0


def played(seeds: range) -> Tally:
    """Play a block of seeds; runs in a process of its own."""
    logging.disable(logging.CRITICAL)
    tally = Tally()
    for seed in seeds:
        history = draw(seed)
        report = play(history)
        tally.edges += report.edges
        tally.reasons += report.reasons
        tally.answered += report.answered
        if report.findings:
            tally.failed.append(seed)
        if replay(report.journal.lines, history.house.max_loaded) is not None:
            tally.unlike.append(seed)
    return tally
