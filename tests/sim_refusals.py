"""Why a client of a played history may be refused, and whether there is ground for it. It plays nothing."""

from dataclasses import dataclass

from antiphon.vocabulary.errors import (
    AntiphonError,
    EngineError,
    InsufficientMemory,
    InvalidRequest,
    LoadFailed,
    ModelNotFound,
    RunTimeout,
    ServerBusy,
    ShuttingDown,
    UnsupportedSlots,
    WorkerDied,
)
from sim_history import Event, House

_REFUSALS = {
    "came free within": "expired",
    "has run for longer": "overdue",
    "are all in use": "no room",
    "no room for a second pool": "no room beside",
    "times in a row": "died too often",
}
REASONS = (
    *_REFUSALS.values(),
    "no room in time",
    "no memory",
    "worker died",
    "run took too long",
    "load took too long",
    "teardown took too long",
    "load failed",
    "too many slots",
    "engine failed",
    "invalid registration",
    "unknown model",
    "shutting down",
)
"""Every reason why a client may be refused."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What was done to a model and its runtime by then."""

    faulty: bool
    killed: bool
    registered: bool
    closing: bool


def reason_of(house: House, event: Event, refusal: AntiphonError, grounds: Grounds) -> tuple[str, bool]:
    """The reason of a refusal, and whether there is any ground for it."""
    bounded = bool(event.timeout_ms) or (house.busy_ms and event.timeout_ms is not None) or house.busy_ms
    match refusal:
        case WorkerDied():
            too_often = _REFUSALS["times in a row"] if "times in a row" in refusal.message else "worker died"
            return too_often, grounds.killed
        case RunTimeout():
            return "run took too long", bool(house.engine_ms)
        case LoadFailed() if "load_timeout_ms" in refusal.message:
            return "load took too long", bool(house.engine_ms)
        case InsufficientMemory():
            return "no memory", house.memory < 1000
        case ServerBusy():
            reason = next((it for words, it in _REFUSALS.items() if words in refusal.message), refusal.message)
            if reason == "no room" and house.room_ms:
                reason = "no room in time"
            bounds = {
                "expired": bounded,
                "overdue": bounded,
                "no room": house.max_loaded,
                "no room in time": house.max_loaded,
                "no room beside": house.max_loaded and event.act == "beside",
            }
            return reason, bool(bounds.get(reason))
        case UnsupportedSlots():
            return "too many slots", event.act not in ("register", "beside")
        case LoadFailed():
            return "load failed", grounds.faulty and "internal error" not in refusal.message
        case EngineError() if "teardown_timeout_ms" in refusal.message:
            return "teardown took too long", bool(house.engine_ms) and house.threads
        case EngineError():
            return "engine failed", grounds.faulty
        case InvalidRequest():
            return "invalid registration", event.act in ("register", "beside", "new") and refusal.param == "slots"
        case ModelNotFound():
            return "unknown model", not grounds.registered
        case ShuttingDown():
            return "shutting down", grounds.closing
    return f"{refusal!r}", False
