"""Carries out a host's orders on one engine: a thread a slot, one more for the lifecycle, and one that reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar, assert_never

from antiphon.runtime.discovery import make_adapter
from antiphon.runtime.hosts import messages, translation
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.hosts.engine import Engine
from antiphon.runtime.hosts.messages import Order
from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.faults import Failed, error_of, failed
from antiphon.runtime.wire.feed import Feed
from antiphon.runtime.wire.parcels import Parcel
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Heard, Hushed, Leave, Want
from antiphon.runtime.wire.window import Window
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError, InvariantError
from antiphon.vocabulary.spec import SessionFacts
from antiphon.vocabulary.tasks import TaskRequest
from antiphon.worker.line import Line

T = TypeVar("T")

Reply: TypeAlias = tuple[Message, list[Pcm]]
"""A message and the sounds beside it."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with requests that is under way."""

    number: int
    slot: int
    requests: Sequence[TaskRequest]
    feed: Feed
    window: Window = field(default_factory=Window)


class EngineWorker:
    """One engine, whose orders are read from a line and answered there."""

    def __init__(self, line: Line[Order]) -> None:
        self._line = line
        self._lifecycle = Crew("lifecycle")
        self._slots: dict[int, Crew] = {}
        self._begin: messages.Begin | None = None
        self._made: Engine | None = None
        self._calls: dict[int, _Call] = {}

    def serve(self) -> None:
        """Carry out what is ordered until the server closes the line; nothing under way is waited for."""
        for number, order, parcel in self._line:
            try:
                self._accept(number, order, parcel)
            except Exception as error:  # noqa: BLE001 (the server owns the outcome of what it ordered)
                self._line.send(number, failed(error))

    def _accept(self, number: int, order: Order, parcel: Parcel) -> None:
        """Hand an order to the thread that it is for; this one only reads."""
        match order:
            case messages.Begin():
                self._begin = order
            case messages.Inspect():
                self._manage(number, lambda: messages.Inspected(self._engine().inspect()))
            case messages.Load():
                self._manage(number, lambda: _done(self._engine().load))
            case messages.Open():
                self._manage(number, lambda: self._seat(0, self._engine().open))
            case messages.Probe(spec):
                self._manage(number, lambda: messages.Opened(self._engine().probe(translation.spec_of(spec))))
            case messages.Clone(slot):
                self._manage(number, lambda: self._seat(slot, partial(self._engine().clone, slot)))
            case messages.Close():
                self._manage(number, lambda: _done(self._close))
            case messages.Run(slot, request):
                self._start(number, slot, [request], parcel, self._run)
            case messages.RunBatch(slot, requests):
                self._start(number, slot, requests, parcel, self._run_batch)
            case messages.Stream(slot, request):
                self._start(number, slot, [request], parcel, self._stream)
            case Cancel() | Grant() | Leave() | Heard() | Hushed():
                self._signal(number, order, parcel)
            case _:
                assert_never(order)

    def _signal(self, number: int, signal: Cancel | Grant | Leave | Heard | Hushed, parcel: Parcel) -> None:
        call = self._calls.get(number)
        if call is None:
            parcel.close()  # it ended meanwhile
            return
        match signal:
            case Cancel(index):
                call.requests[index].cancellation.cancel()
            case Grant(count):
                call.window.give(count)
            case Leave():
                call.window.leave()
            case Heard(offset):
                call.feed.put(AudioChunk(parcel.take()[0], offset))
            case Hushed(fault):
                call.feed.end(None if fault is None else _fault_of(fault))
            case _:
                assert_never(signal)

    def _manage(self, number: int, work: Callable[[], Message]) -> None:
        self._lifecycle.post(partial(self._answer, number, lambda: (work(), [])))

    def _start(
        self,
        number: int,
        slot: int,
        asked: Sequence[messages.Asked],
        parcel: Parcel,
        work: Callable[[_Call], Reply],
    ) -> None:
        sounds = iter(parcel.take())
        requests = [translation.request_of(it, sounds) for it in asked]
        call = _Call(number, slot, requests, Feed(lambda: self._line.send(number, Want())))
        self._calls[number] = call
        self._slots[slot].post(partial(self._answer, number, partial(work, call)))

    def _answer(self, number: int, work: Callable[[], Reply]) -> None:
        """Do it and send what comes of it, on the thread that it was handed to."""
        try:
            self._line.send(number, *work())
        except BaseException as error:  # noqa: BLE001 (the server owns it)
            self._line.send(number, failed(error))
        finally:
            self._calls.pop(number, None)

    def _engine(self) -> Engine:
        if self._made is None:
            if self._begin is None:
                raise InvariantError("a worker is told what it is for before all else")
            self._made = Engine(make_adapter(self._begin.adapter), translation.spec_of(self._begin.spec))
        return self._made

    def _close(self) -> None:
        if self._made is not None:
            self._made.close()

    def _seat(self, slot: int, opener: Callable[[], SessionFacts | None]) -> messages.Opened:
        facts = opener()
        if facts is not None:
            self._slots[slot] = Crew(f"slot{slot}")
        return messages.Opened(facts)

    def _run(self, call: _Call) -> Reply:
        return translation.result_told(self._engine().run(call.slot, call.requests[0]))

    def _run_batch(self, call: _Call) -> Reply:
        self._prepare(call)
        deliver = partial(self._deliver, call, translation.answer_told)
        return _end(self._engine().run_batch(call.slot, call.requests, deliver))

    def _stream(self, call: _Call) -> Reply:
        self._prepare(call)
        deliver = partial(self._deliver, call, translation.event_told)
        request = call.requests[0]
        return _end(self._engine().stream(call.slot, request, call.feed if request.live else None, deliver))

    def _prepare(self, call: _Call) -> None:
        self._engine().prepare(call.slot, call.requests)
        self._line.send(call.number, Began())

    def _deliver(self, call: _Call, told: Callable[[T], Reply], event: T) -> bool:
        if not call.window.take():
            return False
        self._line.send(call.number, *told(event))
        return True


def _fault_of(failure: Failed) -> AntiphonError:
    fault = error_of(failure)
    return fault if isinstance(fault, AntiphonError) else EngineError("the live audio failed")


def _done(work: Callable[[], None]) -> Message:
    work()
    return messages.Done()


def _end(fault: AntiphonError | None) -> Reply:
    return (Ended() if fault is None else failed(fault)), []
