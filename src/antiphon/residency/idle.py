"""When a loaded model has been idle for long enough to be retired. Whether it is idle then, its gate knows."""

from antiphon.residency.registry import Entry
from antiphon.vocabulary.states import ModelState


def idle_deadline(entry: Entry, idle_unload_s: float) -> float | None:
    """When the model may be retired if nobody uses it until then; None where that is never.

    Units: `idle_unload_s` in seconds from the end of the model's last lease or load, 0 for never; the answer in
    monotonic seconds. A deadline is only a wish: whoever acts on it must find the model idle (`try_exclusive`).
    """
    if not idle_unload_s or entry.registration.pinned or entry.state is not ModelState.READY:
        return None
    return entry.last_used + idle_unload_s
