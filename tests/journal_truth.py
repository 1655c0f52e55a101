"""What a journal says of the requests in it, computed the plain way. It reads entries as JSON, and knows no page.

Waits and runs are differences of `now`, levels are told with `time`; all in seconds.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

JsonEntry: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Truth:
    """How requests ended, and `levels`: after each entry its time, how many ran and how many waited."""

    waits: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    befell: Counter[str] = field(default_factory=Counter)
    levels: list[tuple[float, int, int]] = field(default_factory=list)

    def summary(self) -> Mapping[str, object]:
        """As the page's ledger gives it, of a journal that is there from its beginning."""
        counted = ("left", "evicted", "died", "load_failed")
        return {
            "finished": len(self.runs),
            "refused": self.reasons.total(),
            **{what: self.befell[what] for what in counted},
            "reasons": dict(self.reasons),
            "wait": percentiles(self.waits),
            "run": percentiles(self.runs),
        }


def truth_of(entries: Iterable[JsonEntry], model: str = "") -> Truth:
    """Follow every claim of a request, at one model or, with "", at all."""
    truth, entered, granted = Truth(), dict[object, float](), dict[object, float]()
    for entry in entries:
        if model not in ("", entry["model"]):
            continue
        for claim in _steps(entry):
            if claim.get("operation", "infer") == "infer":
                _follow(truth, entry, claim, entered, granted)
        truth.befell[entry["type"]] += 1
        truth.levels.append((entry["time"], len(granted), len(entered) - len(granted)))
    return truth


def percentiles(values: Sequence[float]) -> Mapping[str, float | None]:
    """By nearest rank."""
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {name: sorted(values)[math.ceil(part * len(values)) - 1] if values else None for name, part in ranks.items()}


def _steps(entry: JsonEntry) -> Iterable[JsonEntry]:
    yield from [entry] if entry["type"] in ("submit", "release", "withdraw") else []
    yield from entry.get("decided", [])


def _follow(truth: Truth, entry: JsonEntry, claim: JsonEntry, entered: dict, granted: dict) -> None:
    who, now = (entry["model"], claim["waiter"]), entry["now"]
    match claim["type"]:
        case "submit":
            entered[who] = now
        case "granted":
            granted[who] = now
        case "release":
            truth.waits.append(granted[who] - entered.pop(who))
            truth.runs.append(now - granted.pop(who))
        case "refused":
            truth.reasons[claim["reason"]] += 1
            del entered[who]
        case "withdraw":
            truth.befell["left"] += 1
            del entered[who]
