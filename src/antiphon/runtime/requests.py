"""What an admitted request does under its lease: bind, have the model in memory, run; it admits and manages nobody."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from antiphon.admission.policy import effective_timeout_s, seconds
from antiphon.ports.host import Flow
from antiphon.residency.crashes import CrashRecord
from antiphon.runtime.api import BatchInference, BoundModel, Draft, Inference, Timing
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.live import HearingFlow, LiveSource
from antiphon.runtime.owned import AbandonedError, OwnedTasks
from antiphon.runtime.pool import Pool
from antiphon.runtime.readers import ReaderWatch
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.streams import LeasedStream, StreamEnding
from antiphon.runtime.underway import Admission, Underway
from antiphon.runtime.watch import RunWatch, WatchedFlow
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import SessionFacts
from antiphon.vocabulary.tasks import Interface, StreamEvent, TaskRequest, TaskResult

T = TypeVar("T")


class RequestPath:
    """Carries admitted requests out, each in a task of the runtime's own; it gives their leases back."""

    def __init__(
        self, ports: RuntimePorts, residents: Residents, desk: LeaseDesk, tasks: OwnedTasks, underway: Underway
    ) -> None:
        self._ports = ports
        self._residents = residents
        self._desk = desk
        self._tasks = tasks
        self._underway = underway

    async def run(
        self, admission: Admission, inference: Inference, finish: Callable[[TaskResult, Timing], Awaitable[T]]
    ) -> T:
        """Run offline; the lease is released when the engine and `finish` are through, not when the caller leaves."""
        watch = self._watch(admission, inference.run_timeout_ms, [inference.request])
        return await self._underway.attend(admission.resident, self._run(admission, inference, watch, finish), watch)

    async def open_stream(self, admission: Admission, inference: Inference) -> LeasedStream[StreamEvent]:
        """Start a stream; if the caller leaves before it has one, it is closed as soon as there is one."""
        watch = self._watch(admission, inference.run_timeout_ms, [inference.request])
        opening = self._open_flow(admission, watch, partial(self._start_stream, admission, inference, watch))
        return await self._underway.attend(admission.resident, opening, watch)

    async def open_batch(self, admission: Admission, batch: BatchInference) -> LeasedStream[tuple[int, TaskResult]]:
        """Start a batch, as a stream is started."""
        watch = self._watch(admission, batch.run_timeout_ms, [draft.request for draft in batch.drafts])
        opening = self._open_flow(admission, watch, partial(self._start_batch, admission, batch, watch))
        return await self._underway.attend(admission.resident, opening, watch)

    def _watch(self, admission: Admission, run_timeout_ms: int | None, requests: Sequence[TaskRequest]) -> RunWatch:
        entry, limits = admission.resident.entry, self._ports.engine_limits
        try:
            model_s = seconds(entry.registration.run_timeout_ms)
            limit_s = effective_timeout_s(seconds(run_timeout_ms), model_s, limits.run_s)
            cancel_s = effective_timeout_s(None, seconds(entry.registration.cancel_timeout_ms), limits.cancel_s)
            # Nobody need be told where nothing is limited, and then the caller waits for one thing only.
            told = limit_s or limits.load_s or entry.registration.load_timeout_ms
            on_overdue = partial(self._residents.failed, entry, "run")
            future = asyncio.get_running_loop().create_future() if told else None
            return RunWatch(self._ports.clock, limit_s, requests, on_overdue, future, cancel_s=cancel_s)
        except BaseException:
            self._desk.release(admission.lease)
            raise

    async def _run(
        self,
        admission: Admission,
        inference: Inference,
        watch: RunWatch,
        finish: Callable[[TaskResult, Timing], Awaitable[T]],
    ) -> T:
        now, resident = self._ports.clock.now, admission.resident
        with self._desk.holding(admission.lease):
            loading = now()
            asked = [_draft_of(inference)]
            pool, requests = await self._prepare(resident, asked, inference.interface, watch)
            started = now()
            try:
                with watch.running(pool.host):
                    result = await pool.host.run(admission.slot, requests.pop())
            finally:
                watch.ended()
                self._ports.observer.ran(resident.entry.id, started - loading, now() - started)
            self._succeeded(resident)
            _require_attended(inference.request)
            self._desk.run_times(resident.entry.id).note_run(now() - started)
            return await finish(result, Timing(admission.queue_s, started - loading, now() - started))

    async def _start_stream(
        self, admission: Admission, inference: Inference, watch: RunWatch
    ) -> tuple[Pool, Flow[StreamEvent]]:
        asked = [_draft_of(inference)]
        pool, (request,) = await self._prepare(admission.resident, asked, inference.interface, watch)
        start: Callable[[], Awaitable[Flow[StreamEvent]]]
        if inference.live is None:
            start = partial(pool.host.stream, admission.slot, request, None)
        else:
            source = LiveSource(inference.live, self._ports.codec, pool.facts, watch)
            start = partial(self._start_hearing, pool, admission.slot, replace(request, live=True), source)
        return pool, await self._started(start, admission, watch, pool)

    async def _start_hearing(self, pool: Pool, slot: int, request: TaskRequest, source: LiveSource) -> HearingFlow:
        with self._underway.hearing(source) as over:
            return HearingFlow(await pool.host.stream(slot, request, source), source, over)

    async def _start_batch(
        self, admission: Admission, batch: BatchInference, watch: RunWatch
    ) -> tuple[Pool, Flow[tuple[int, TaskResult]]]:
        pool, requests = await self._prepare(admission.resident, list(batch.drafts), Interface.BATCH, watch)
        start = partial(pool.host.run_batch, admission.slot, requests)
        return pool, await self._started(start, admission, watch, pool)

    async def _started(
        self, start: Callable[[], Awaitable[Flow[T]]], admission: Admission, watch: RunWatch, pool: Pool
    ) -> WatchedFlow[T]:
        flow: Flow[T] | None = None
        now, lease = self._ports.clock.now, admission.lease
        started = now()
        try:
            with watch.running(pool.host):
                flow = await start()
        except BaseException:
            if flow is not None:
                await flow.aclose()
            self._ports.observer.ran(admission.resident.entry.id, started - lease.since, now() - started)
            raise
        return WatchedFlow(flow, watch, pool.host, partial(self._succeeded, admission.resident))

    async def _open_flow(
        self, admission: Admission, watch: RunWatch, start: Callable[[], Awaitable[tuple[Pool, Flow[T]]]]
    ) -> LeasedStream[T]:
        try:
            loading = self._ports.clock.now()
            pool, flow = await start()
            try:
                self._underway.require_uncut()
                load_s = self._ports.clock.now() - loading
                over = partial(self._stream_over, admission, load_s)
                watch_reader = partial(self._reader_watch, admission.resident.entry.id)
                ending = StreamEnding(flow, over, self._tasks, self._ports.clock, watch_reader)
                self._underway.add_stream(admission.lease, ending)
            except BaseException:
                await flow.aclose()
                raise
        except BaseException:
            watch.ended()
            self._desk.release(admission.lease)
            raise
        # Where nobody takes this stream any more, it is dropped here, and so ended by its finaliser.
        return LeasedStream(ending, pool.facts, admission.queue_s, load_s)

    def _reader_watch(self, model_id: str, on_too_slow: Callable[[], None]) -> ReaderWatch:
        grace_s, before = self._ports.engine_limits.reader_s, self._desk.refusals(model_id)

        def is_wanted() -> bool:
            # Behind a stream that is older than anyone would wait nobody does: all are refused at once.
            return self._desk.is_wanted(model_id) or self._desk.refusals(model_id) > before

        return ReaderWatch(self._ports.clock, grace_s, is_wanted, on_too_slow)

    async def _prepare(
        self,
        resident: Resident,
        asked: list[Draft],
        interface: Interface,
        watch: RunWatch,
    ) -> tuple[Pool, list[TaskRequest]]:
        """Bind the configuration under the lease, then have the model in memory and the audio as it takes it.

        `asked` is emptied: no recording lives on here beside its converted copy.
        """
        self._underway.require_uncut()
        entry = resident.entry
        model = BoundModel(entry.registration, entry.capability)
        bound = [await draft.bind(model, draft.request) for draft in asked]
        asked.clear()
        for request in bound:  # a recording may have been decoded meanwhile
            _require_attended(request)
        with resident.releasing(watch.told):
            pool = await self._residents.pool(resident)
        if interface not in pool.facts.interfaces:
            raise InvalidRequest(f"model {entry.id!r} cannot be called {interface}", param="model")
        fitted: list[TaskRequest] = []
        while bound:
            fitted.append(await self._fitted(bound.pop(0), pool))
        return pool, fitted

    async def _fitted(self, request: TaskRequest, pool: Pool) -> TaskRequest:
        _require_attended(request)
        if request.audio is None and request.voice_ref is None:
            return request
        fitted = replace(
            request,
            audio=await self._converted(request.audio, pool.facts),
            voice_ref=await self._converted(request.voice_ref, pool.facts),
        )
        _require_attended(request)
        return fitted

    async def _converted(self, audio: Pcm | None, facts: SessionFacts) -> Pcm | None:
        return None if audio is None else await self._ports.codec.convert(audio, facts.sample_rate, facts.channels)

    def _succeeded(self, resident: Resident) -> None:
        resident.crashes = CrashRecord()
        self._residents.memory.sample(resident)

    def _stream_over(self, admission: Admission, load_s: float, run_s: Callable[[], float]) -> None:
        """A stream keeps its slot for as long as its reader takes, and so long do those behind it wait."""
        self._underway.drop_stream(admission.lease)
        with self._desk.holding(admission.lease):
            model_id, took_s = admission.resident.entry.id, run_s()
            self._ports.observer.ran(model_id, load_s, took_s)
            self._desk.run_times(model_id).note_run(took_s)


def _draft_of(inference: Inference) -> Draft:
    """What is asked, with the audio that was handed over for it."""
    request = inference.request
    if inference.audio is not None:
        request = replace(request, audio=inference.audio.take())
    return Draft(request, inference.bind)


def _require_attended(request: TaskRequest) -> None:
    """Go no further for a client that has left."""
    if request.cancelled():
        raise AbandonedError
