"""The two judgements about time that admission makes; it keeps no state.

Units: seconds throughout; 0 is "no bound" at every layer, as the contract has it.
"""

import math
from collections.abc import Iterable


def effective_timeout_s(request_s: float | None, model_s: float | None, server_s: float) -> float:
    """How long a claim may wait: the request's wish under the model's ceiling, or the server's where it has none.

    None is "not said"; 0 is "no bound", and so replaces the server's default where a model says it.
    """
    ceiling_s = _bound(server_s if model_s is None else model_s)
    shortest_s = ceiling_s if request_s is None else min(_bound(request_s), ceiling_s)
    return 0.0 if math.isinf(shortest_s) else shortest_s


def seconds(milliseconds: int | None) -> float | None:
    """A configured time in seconds; None is "not said"."""
    return None if milliseconds is None else milliseconds / 1000


def is_hopeless(occupied_since: Iterable[float], now: float, timeout_s: float) -> bool:
    """Whether every occupant has been at work for longer than this caller would wait (time.healthy_and_overdue).

    One healthy occupant permits a bounded wait; free slots are no occupants, and a caller without a bound always waits.
    """
    youngest = max(occupied_since, default=None)
    return timeout_s > 0 and youngest is not None and now - youngest > timeout_s


def _bound(timeout_s: float) -> float:
    return math.inf if timeout_s == 0 else timeout_s
