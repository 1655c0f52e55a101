"""A snapshot as people see it: a table that any console of rich's can print. It asks nobody."""

from typing import TYPE_CHECKING

from antiphon.status.snapshot import Model, Snapshot, Waiter
from antiphon.vocabulary.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

COLUMNS = ("model", "task", "state", "slots", "queue", "memory", "last error")
SHOWN_WAITERS = 8
"""Of a longer queue the first are shown, and how many more there are."""

_MIB = 1024 * 1024
_STATES = {"ready": "green", "unloaded": "dim"}
_UNDER_WAY = "yellow"
_BARRIER = "bold magenta"


def board(snapshot: Snapshot, url: str) -> "RenderableType":
    """The table, with a line above it that sums it up."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column == "memory" else "left")
    for model in snapshot.models:
        table.add_row(
            _plain(f"{model.id} @{model.replica}" if model.replica else model.id),
            _plain(model.task),
            _plain(model.state, _STATES.get(model.state, _UNDER_WAY)),
            _slots(model),
            _queue(model),
            _memory(model.resident_bytes),
            _plain(model.last_error or "", "red"),
        )
    left_out = [
        _plain(f"not served: {it.id}{f' @{it.replica}' if it.replica else ''}: {it.error}", "red")
        for it in snapshot.not_served
    ]
    return Group(_plain(f"{url}  {_sum(snapshot)}"), table, *left_out)


def age(age_ms: float) -> str:
    """How long something has been so, to two digits or so."""
    seconds = age_ms / 1000
    if seconds < 1:
        return f"{round(age_ms)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02} min"


def _sum(snapshot: Snapshot) -> str:
    loaded = [model for model in snapshot.models if model.state == "ready"]
    resident_bytes = sum(model.resident_bytes or 0 for model in snapshot.models)
    return f"models: {len(snapshot.models)}, ready: {len(loaded)}, {_memory(resident_bytes)}"


def _slots(model: Model) -> "Text":
    """A cell for each slot; one for all of them under an exclusive lease."""
    from rich.text import Text

    leases = {lease.slot: lease for lease in model.leases}
    if (exclusive := leases.get(None)) is not None:
        return _plain(f"[all {exclusive.operation} {age(exclusive.age_ms)}]", _BARRIER)
    cells = []
    for slot in range(model.slots):
        lease = leases.get(slot)
        cells.append(
            Text(f"[{slot} free]", style="dim")
            if lease is None
            else _plain(f"[{slot} {lease.operation} {age(lease.age_ms)}]", _UNDER_WAY)
        )
    return Text(" ").join(cells)


def _queue(model: Model) -> "Text":
    """The waiters in order. A barrier stands between bars: what is behind it waits for it."""
    from rich.text import Text

    shown = [_waiter(waiter) for waiter in model.queue[:SHOWN_WAITERS]]
    if model.waiting > len(shown):
        shown.append(Text(f"+{model.waiting - len(shown)} more"))
    return Text(", ").join(shown)


def _waiter(waiter: Waiter) -> "Text":
    text = f"{waiter.position} {waiter.operation} {age(waiter.age_ms)}"
    return _plain(text) if waiter.kind == "request" else _plain(f"| {text} |", _BARRIER)


def _memory(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / _MIB:,.0f} MiB"


def _plain(text: str, style: str = "") -> "Text":
    """A text that was told to us: it steers no terminal, and square brackets in it are no markup."""
    from rich.text import Text

    return Text(printable(text), style=style)
