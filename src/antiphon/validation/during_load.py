"""A management call that is to meet a model while it loads; it knows no question and no answer of the model."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from antiphon.validation.errors import NoAnswer
from antiphon.validation.evidence import Verdict
from antiphon.validation.site import Standing
from antiphon.validation.verdicts import Trouble, failed
from antiphon.vocabulary.states import ModelState


class DuringLoad:
    """A management call made once a whole wave has met a load, and whether it was seen to wait for that load.

    `requests` are those of the wave: one that is still being received or decoded would come after the call, and rightly
    bring the model back.
    """

    def __init__(self, call: Callable[[], Mapping[str, object]], requests: int) -> None:
        self._call = call
        self._requests = requests
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[Mapping[str, object]] | None = None
        self._waited = False
        self.told: Mapping[str, object] | None = None
        self._fault: str | None = None

    def look(self, standing: Standing) -> None:
        """Hear how the entry stands."""
        if standing.state is not ModelState.LOADING:
            return
        if self._pending is None:
            if standing.active_slots + standing.queued_requests == self._requests:
                self._pending = self._thread.submit(self._call)
        elif standing.queued_managers:
            self._waited = True

    def troubles(self) -> list[Trouble]:
        """What went wrong with the call itself."""
        if self._fault is not None:
            return [failed(f"the unload failed: {self._fault}")]
        if not self._waited:
            return [Trouble(Verdict.UNVERIFIED, "no unload was seen to wait for the load")]
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # nobody asks what came of the call, which ends with the server
            self._thread.shutdown(wait=False)
            return
        if self._pending is not None:
            try:
                self.told = self._pending.result()
            except NoAnswer as fault:
                self._fault = fault.message
        self._thread.shutdown()
