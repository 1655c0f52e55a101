"""The test's side of a controlled checkpoint: it writes the steering files and waits for events. It runs no engine."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from antiphon.testing.events import Event, read_events
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode, OptionValue, Task

POLL_S = 0.005
HANG_GUARD_S = 30.0
"""No wait is as long as this unless something hangs. Units: seconds."""


class ControlledCheckpoint:
    """A folder that `ControlledAdapter` loads as a model; it is made when it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.path.mkdir(parents=True, exist_ok=True)

    def spec(
        self,
        task: Task = Task.TTS,
        *,
        model_id: str = "controlled",
        mode: Mode = Mode.OFFLINE,
        slots: int = 1,
        session_options: Mapping[str, OptionValue] | None = None,
    ) -> ModelSpec:
        """What to register so that this folder is loaded."""
        return ModelSpec(
            model_id, "controlled", str(self.path), task, mode, slots, session_options=dict(session_options or {})
        )

    def set(self, name: str, text: str = "") -> None:
        """Write one steering file, whole: an engine that reads it meanwhile sees the old or the new text."""
        draft = self.path / f".{name}"
        draft.write_text(text)
        draft.replace(self.path / name)

    def unset(self, name: str) -> None:
        """Remove one steering file; raises FileNotFoundError when there is none."""
        (self.path / name).unlink()

    def hold(self, step: str, text: str | None = None) -> None:
        """Let each such step, or only that of the request with this text, wait from now on."""
        self.set(_hold(step, text))

    def release(self, step: str, text: str | None = None) -> None:
        """Take a hold back; whoever waits in it goes on. Raises FileNotFoundError when there is none."""
        self.unset(_hold(step, text))

    @contextmanager
    def held(self, step: str, text: str | None = None) -> Iterator[None]:
        """Hold a step inside the `with` block; a release within it is fine."""
        self.hold(step, text)
        try:
            yield
        finally:
            (self.path / _hold(step, text)).unlink(missing_ok=True)

    def fail(self, step: str, exception: str = "RuntimeError") -> None:
        """Let each such step raise this class; for a clone, a number before it says which: "2 MemoryError"."""
        self.set(f"{step}.fail", exception)

    def events(self, step: str | None = None, text: str | None = None) -> list[Event]:
        """The events so far, of one step or of the requests with one text when these are given."""
        return [
            event for event in read_events(self.path) if step in (None, event.step) and text in (None, event.request)
        ]

    def wait_for(self, step: str, count: int = 1, text: str | None = None, timeout_s: float = HANG_GUARD_S) -> Event:
        """Block until such a step was announced `count` times, and return the last of these.

        Raises AssertionError, with all events seen, once `timeout_s` seconds have passed.
        """
        deadline = time.monotonic() + timeout_s
        while (found := self._nth(step, count, text, deadline)) is None:
            time.sleep(POLL_S)
        return found

    async def await_for(
        self, step: str, count: int = 1, text: str | None = None, timeout_s: float = HANG_GUARD_S
    ) -> Event:
        """Do as `wait_for` without blocking the event loop."""
        import asyncio  # costs a worker process a fifth of its start, and there it is not needed

        deadline = time.monotonic() + timeout_s
        while (found := self._nth(step, count, text, deadline)) is None:  # noqa: ASYNC110 (a file is awaited)
            await asyncio.sleep(POLL_S)
        return found

    def _nth(self, step: str, count: int, text: str | None, deadline: float) -> Event | None:
        matching = self.events(step, text)
        if len(matching) >= count:
            return matching[count - 1]
        if time.monotonic() > deadline:
            seen = "\n".join(f"  {event}" for event in self.events()) or "  none"
            raise AssertionError(f"no {count} x {step!r} (text {text!r}); the events seen:\n{seen}")
        return None


def _hold(step: str, text: str | None) -> str:
    """The name of a hold's file."""
    return f"{step}.hold" if text is None else f"{step}.hold.{text}"
