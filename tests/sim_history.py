"""Histories as data: what happens to a server, when. Drawn from a seed, and made smaller while they still fail."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

FAULTS = (
    *("inspect", "load", "load", "open", "open", "clone", "probe"),
    *("run", "run", "stream", "run_batch", "step", "reset", "close"),
)
"""The calls to a host that a history can have fail, the more often the more often they stand here."""

HANGS = (
    "run",
    "run",
    "stream",
    "step",
    "step",
    "run_batch",
    "reset",
    "load",
    "open",
    "clone",
    "close",
    "close",
    "close",
)
"""The calls to a host that a history can have hang."""


@dataclass(frozen=True, slots=True)
class House:
    """The server: its runtime, the slots of its models, its limits. Units: ms, and MiB of memory; 0 is no limit.

    `frail` has the first loads of the first model end in the death of its host. `engine_ms` limits runs, loads and
    teardowns, so that engines may hang. `threads` has hosts that cannot be killed, nor die: a call that hangs there
    ends by itself, long after its limit.
    """

    parallel: bool = True
    slots: tuple[int, ...] = (1,)
    max_loaded: int = 0
    idle_ms: int = 0
    min_free: int = 0
    memory: int = 1000
    room_ms: int = 0
    busy_ms: int = 0
    pinned: bool = False
    eager: bool = False
    frail: bool = False
    engine_ms: int = 0
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something happens `at_ms`. `value` says more, for each `act` in its own way; a client may leave later.

    Acts: say, stream, drop (a stream that nobody reads), batch, load, unload, bulk, register, beside (followed by an
    unload for odd values), new, status, foresee (a dry run, then the real load), fault, kill (a host dies, or the next
    ones do), hang (a call to a host takes longer than its limit, if there is one), close.
    """

    at_ms: int
    act: str
    model: int = 0
    value: int = 0
    timeout_ms: int | None = None
    leaves_ms: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A server and what happens to it."""

    house: House
    events: tuple[Event, ...]

    def __str__(self) -> str:
        return "\n".join([repr(self.house), *map(repr, self.events)])


_ACTS = {
    "say": 30,
    "stream": 6,
    "drop": 2,
    "batch": 3,
    "load": 4,
    "unload": 8,
    "bulk": 5,
    "register": 16,
    "beside": 11,
    "new": 7,
    "status": 2,
    "foresee": 6,
    "fault": 14,
    "kill": 10,
    "hang": 12,
}


def draw(seed: int) -> History:
    """The history of a seed."""
    random = Random(seed)
    models = random.randint(3, 5)
    parallel = random.random() < 0.75
    house = House(
        parallel=parallel,
        slots=tuple(random.choice((1, 2, 4)) if parallel else 1 for _ in range(models)),
        max_loaded=random.choice((0, 1, 2, 2, 3)),
        idle_ms=random.choice((0, 0, 5, 20)),
        min_free=random.choice((0, 0, 1)),
        memory=random.choice((2, 3, 4, 1000, 1000, 1000, 1000, 1000)),
        room_ms=random.choice((0, 0, 4, 15)),
        busy_ms=random.choice((0, 0, 6, 25)),
        pinned=random.random() < 0.15,
        eager=random.random() < 0.2,
        frail=random.random() < 0.2,
        engine_ms=random.choice((0, 40)),
        threads=seed % 3 == 0,
    )
    length = random.choice((20, 60, 120))
    events = [_event(random, models, length) for _ in range(random.randint(4, 36))]
    if random.random() < 0.15:
        events.append(Event(random.randrange(length * 2 // 3, length), "close"))
    return History(house, tuple(sorted(events, key=lambda it: it.at_ms)))


def minimal(history: History, fails: Callable[[History], bool]) -> History:
    """A history that still fails, of which no event can be left out, and which says as little as possible."""
    while True:
        smaller = _plain_events(_plain_house(_fewer(history, fails), fails), fails)
        if smaller == history:
            return history
        history = smaller


def _fewer(history: History, fails: Callable[[History], bool]) -> History:
    """Leave events out: halves first, single ones last."""
    size = len(history.events)
    while size:
        for at in range(0, len(history.events), size):
            shorter = replace(history, events=history.events[:at] + history.events[at + size :])
            if fails(shorter):
                history = shorter
                break
        else:
            size //= 2
            continue
        size = min(size, len(history.events))
    return history


def _plain_events(history: History, fails: Callable[[History], bool]) -> History:
    for at in range(len(history.events)):
        for plainer in _plainer(history.events[at]):
            simpler = replace(history, events=(*history.events[:at], plainer, *history.events[at + 1 :]))
            if fails(simpler):
                history = simpler
    return history


def _event(random: Random, models: int, length: int) -> Event:
    act = random.choices(list(_ACTS), list(_ACTS.values()))[0]
    return Event(
        at_ms=random.randrange(length),
        act=act,
        model=random.randrange(models) if random.random() < 0.88 else models,
        value=random.randrange(1000),
        timeout_ms=random.choice((None, None, 0, 1, 3, 10)),
        leaves_ms=random.choice((0, 1, 2, 3, 5, 9)) if random.random() < 0.2 else None,
    )


def _plainer(event: Event) -> list[Event]:
    plainer = [
        replace(event, timeout_ms=None),
        replace(event, leaves_ms=None),
        replace(event, value=0),
        replace(event, timeout_ms=None, leaves_ms=None, value=0),
    ]
    return [it for it in plainer if it != event]


def _plain_house(history: History, fails: Callable[[History], bool]) -> History:
    for name in (
        "max_loaded",
        "idle_ms",
        "min_free",
        "memory",
        "room_ms",
        "busy_ms",
        "pinned",
        "eager",
        "threads",
        "frail",
        "engine_ms",
    ):
        plainer = replace(history, house=replace(history.house, **{name: getattr(House(), name)}))
        if plainer != history and fails(plainer):
            history = plainer
    return history
