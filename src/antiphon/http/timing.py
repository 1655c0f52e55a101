"""Where a request's time went, as answers show it: a `Server-Timing` header and a `timing` member, in milliseconds."""

from antiphon.runtime.api import Timing


def timing_header(timing: Timing, *, run: bool = True) -> dict[str, str]:
    """The header; a stream's has no run, which is not over when it is sent."""
    parts = [("queue", timing.queue_s), ("load", timing.load_s), *([("run", timing.run_s)] if run else [])]
    return {"server-timing": ", ".join(f"{name};dur={seconds * 1000:.1f}" for name, seconds in parts)}


def timing_json(timing: Timing) -> dict[str, float]:
    """The member of a JSON answer."""
    return {
        "queue_ms": round(timing.queue_s * 1000, 3),
        "load_ms": round(timing.load_s * 1000, 3),
        "run_ms": round(timing.run_s * 1000, 3),
    }
