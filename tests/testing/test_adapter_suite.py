"""AdapterTests passes a sound adapter and fails each of a row of broken ones, by the test that names the fault."""

import inspect
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.testing.adapter_suite import AdapterTests, OpenSessions
from antiphon.testing.calls import answer
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    Interface,
    Mode,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
)
from echo_engine import RATE, EchoAdapter, EchoModel, EchoSession, echo

TESTS = [name for name in dir(AdapterTests) if name.startswith("test_")]


def check(test: str, adapter: EchoAdapter, tmp_path: Path) -> None:
    """Run one test of the suite against an adapter, its fixtures filled in by hand."""
    (tmp_path / "weights").touch()
    spec = ModelSpec("echo", "echo", str(tmp_path), Task.TTS, slots=2)
    loaded = adapter.load(spec)
    sound = Pcm(memoryview(array("f", [number % 26 for number in range(3000)])), RATE)
    requests = [TaskRequest(text="first", audio=sound), TaskRequest(text="second")]
    fixtures = {
        "adapter": adapter,
        "spec": spec,
        "loaded": loaded,
        "sessions": OpenSessions(loaded),
        "requests": requests,
        "bad_request": TaskRequest(),
        "tmp_path": tmp_path,
    }
    method: Callable[..., None] = getattr(AdapterTests(), test)
    method(**{name: fixtures[name] for name in inspect.signature(method).parameters})


@pytest.mark.parametrize("test", TESTS)
def test_a_sound_adapter_passes(test: str, tmp_path: Path) -> None:
    check(test, EchoAdapter(), tmp_path)


class OnlyStreams(EchoSession):
    interfaces = frozenset({Interface.STREAMING})


class OnlyBatches(EchoSession):
    interfaces = frozenset({Interface.BATCH})


@pytest.mark.parametrize("sound", [OnlyStreams, OnlyBatches])
def test_a_session_with_one_interface_is_called_by_it(sound: type[EchoSession]) -> None:
    request = TaskRequest(text="first")
    result = answer(sound(), request)
    assert (result.text, result.audio) == ("first", echo(request))


class AnotherFamily(EchoAdapter):
    family = "another"


class WritesWhileItInspects(EchoAdapter):
    def inspect(self, spec: ModelSpec) -> Capability:
        (Path(spec.path) / "cache").touch()
        return super().inspect(spec)


class LacksTheTaskOfItsSpec(EchoAdapter):
    def inspect(self, spec: ModelSpec) -> Capability:
        return replace(super().inspect(spec), tasks=frozenset({Task.ASR}))


class InspectsWhatIsMissing(EchoAdapter):
    def inspect(self, spec: ModelSpec) -> Capability:
        return Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=RATE, weight_bytes=0)


class InspectsAnotherRate(EchoAdapter):
    def inspect(self, spec: ModelSpec) -> Capability:
        return replace(super().inspect(spec), sample_rate=2 * RATE)


class OpensNothing(EchoAdapter):
    def load(self, spec: ModelSpec) -> EchoModel:
        model = super().load(spec)
        model.open_session = lambda: None  # type: ignore[method-assign]  # an engine that gives no session
        return model


class AnswersWithTheLoad(EchoAdapter):
    """Its answers depend on how often it was loaded."""

    loads = 0

    def load(self, spec: ModelSpec) -> EchoModel:
        self.loads += 1
        loads = self.loads

        class Numbered(EchoSession):
            def run(self, request: TaskRequest) -> TaskResult:
                return replace(super().run(request), text=f"{loads}")

        model = super().load(spec)
        model.session = Numbered
        return model


class CloneOfAnotherRate(EchoSession):
    def clone(self) -> EchoSession:
        clone = super().clone()
        clone.sample_rate = 2 * RATE
        return clone


class ClonesItself(EchoSession):
    def clone(self) -> EchoSession:
        return self


class ClonesNothing(EchoSession):
    def clone(self) -> EchoSession:
        return None  # type: ignore[return-value]  # a broken engine


class LacksAnInterface(EchoSession):
    run_batch = None  # type: ignore[assignment]  # declared and not there


class TooManySlots(EchoSession):
    capacity = 17


class TooFewSlots(EchoSession):
    capacity = 1


class RemembersEarlierRequests(EchoSession):
    def run(self, request: TaskRequest) -> TaskResult:
        return replace(super().run(request), text=" ".join(self.requests))


class LeaksIntoOtherSessions(EchoSession):
    seen: list[str] = []  # noqa: RUF012 (the fault: one list for all sessions)

    def run(self, request: TaskRequest) -> TaskResult:
        self.seen.append(request.text or "")
        return replace(super().run(request), text=f"{len(self.seen)}")


class AnswersAlike(EchoSession):
    def run(self, request: TaskRequest) -> TaskResult:
        return super().run(TaskRequest(text="the same"))


class SpeaksAtAnotherRate(EchoSession):
    def run(self, request: TaskRequest) -> TaskResult:
        return replace(super().run(request), audio=Pcm(echo(request).samples, 2 * RATE))


class TakesABadRequest(EchoSession):
    def prepare(self, request: TaskRequest) -> None: ...


class RefusesWithAnotherError(EchoSession):
    def prepare(self, request: TaskRequest) -> None:
        if not request.text:
            raise ValueError("a text is needed")


class TripsOverABadRequest(EchoSession):
    tripped = False

    def prepare(self, request: TaskRequest) -> None:
        self.tripped = self.tripped or not request.text
        super().prepare(request)

    def run(self, request: TaskRequest) -> TaskResult:
        return replace(super().run(request), language="en" if self.tripped else None)


class RaisesWhenItIsCancelled(EchoSession):
    def run(self, request: TaskRequest) -> TaskResult:
        if request.cancelled():
            raise KeyError("cancelled")
        return super().run(request)


class StreamsWithoutAnEnd(EchoSession):
    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        yield from list(super().stream(request, audio))[:-1]


class StreamsTwoEnds(EchoSession):
    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        events = list(super().stream(request, audio))
        yield from [*events, events[-1]]


class StreamsItsAudioTwice(EchoSession):
    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        yield from list(super().stream(request, audio))[:-1]
        yield Final(self.run(request))


class StreamsOtherwiseEachTime(EchoSession):
    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        events = list(super().stream(request, audio))
        yield from events[len(self.requests) - 1 :]


class KeepsTheRestOfAStream(EchoSession):
    """A stream that was closed early goes on in the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.rest: list[StreamEvent] = []

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        self.rest += [event for event in super().stream(request, audio) if isinstance(event, AudioDelta)]
        while self.rest:
            yield self.rest.pop(0)
        yield Final(TaskResult(text=request.text))


class ForgetsAnItemOfABatch(EchoSession):
    def run_batch(self, requests: Sequence[TaskRequest]) -> Iterator[tuple[int, TaskResult]]:
        yield from list(super().run_batch(requests))[1:]


class RepeatsAnItemOfABatch(EchoSession):
    def run_batch(self, requests: Sequence[TaskRequest]) -> Iterator[tuple[int, TaskResult]]:
        results = list(super().run_batch(requests))
        yield from [*results, results[0]]


class DiesWithItsPrimary(EchoSession):
    def __init__(self, primary: "DiesWithItsPrimary | None" = None) -> None:
        super().__init__()
        self.primary = primary or self
        self.open = True

    def clone(self) -> EchoSession:
        return type(self)(self)

    def close(self) -> None:
        self.open = False

    def run(self, request: TaskRequest) -> TaskResult:
        return replace(super().run(request), language="en" if self.primary.open else None)


class EndsOtherwiseThanItSaid(EchoSession):
    def hear(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        *deltas, _ = super().hear(audio)
        yield from [*deltas, Final(TaskResult(text="something else"))]


class NeedsSomethingToHear(EchoSession):
    def hear(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        chunks = list(audio)
        if not chunks:
            raise ValueError("nothing came")
        yield from super().hear(iter(chunks))


class HearsTheEdgesOfChunks(EchoSession):
    def hear(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        text = "".join(f"{chunk.pcm.frames} " for chunk in audio)
        yield from [TextDelta(text), Final(TaskResult(text=text))]


class TakesAFailureForTheEnd(EchoSession):
    def hear(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        chunks = []
        with suppress(AntiphonError):
            chunks += [next(audio)]
            chunks += list(audio)
        yield from super().hear(iter(chunks))


BROKEN_ADAPTERS: list[tuple[type[EchoAdapter], str]] = [
    (AnotherFamily, "test_the_family_is_the_one_that_the_spec_names"),
    (WritesWhileItInspects, "test_inspect_is_repeatable_and_leaves_the_files_alone"),
    (LacksTheTaskOfItsSpec, "test_inspect_tells_a_sane_capability"),
    (InspectsWhatIsMissing, "test_inspect_of_a_missing_model_is_a_configuration_error"),
    (InspectsAnotherRate, "test_the_primary_is_what_the_spec_and_the_capability_say"),
    (OpensNothing, "test_each_declared_interface_exists"),
    (AnswersWithTheLoad, "test_a_second_load_answers_as_the_first_did"),
]
BROKEN_SESSIONS: list[tuple[type[EchoSession], str]] = [
    (CloneOfAnotherRate, "test_a_clone_agrees_with_its_primary"),
    (ClonesItself, "test_a_clone_agrees_with_its_primary"),
    (ClonesNothing, "test_a_clone_agrees_with_its_primary"),
    (LacksAnInterface, "test_each_declared_interface_exists"),
    (TooManySlots, "test_the_capacity_covers_the_slots_of_the_spec"),
    (TooFewSlots, "test_the_capacity_covers_the_slots_of_the_spec"),
    (RemembersEarlierRequests, "test_equal_requests_get_equal_answers"),
    (AnswersAlike, "test_equal_requests_get_equal_answers"),
    (LeaksIntoOtherSessions, "test_interleaved_sessions_answer_as_a_fresh_one_does"),
    (LeaksIntoOtherSessions, "test_concurrent_sessions_answer_as_one_does_serially"),
    (SpeaksAtAnotherRate, "test_spans_and_audio_are_in_the_units_of_the_session"),
    (TakesABadRequest, "test_a_bad_request_is_refused_and_changes_nothing"),
    (RefusesWithAnotherError, "test_a_bad_request_is_refused_and_changes_nothing"),
    (TripsOverABadRequest, "test_a_bad_request_is_refused_and_changes_nothing"),
    (RaisesWhenItIsCancelled, "test_a_cancelled_request_ends_and_changes_nothing"),
    (StreamsWithoutAnEnd, "test_a_stream_joins_to_its_final_result"),
    (StreamsTwoEnds, "test_a_stream_joins_to_its_final_result"),
    (StreamsItsAudioTwice, "test_a_stream_joins_to_its_final_result"),
    (StreamsOtherwiseEachTime, "test_equal_streams_have_equal_pieces"),
    (KeepsTheRestOfAStream, "test_a_stream_that_was_closed_early_leaves_the_session_fit"),
    (EndsOtherwiseThanItSaid, "test_live_audio_joins_to_its_final_result"),
    (NeedsSomethingToHear, "test_live_audio_that_is_over_at_once_has_a_result"),
    (HearsTheEdgesOfChunks, "test_the_edges_of_live_chunks_change_nothing"),
    (TakesAFailureForTheEnd, "test_a_live_source_that_fails_ends_the_stream_alone"),
    (ForgetsAnItemOfABatch, "test_a_batch_yields_every_index_once"),
    (RepeatsAnItemOfABatch, "test_a_batch_yields_every_index_once"),
    (DiesWithItsPrimary, "test_a_clone_outlives_its_primary"),
]
FAULTS = (AssertionError, pytest.fail.Exception, ValueError, KeyError)
"""How a test of the suite fails: by its own word, or by the wrong exception of a broken session."""


@pytest.mark.parametrize(("broken", "test"), BROKEN_ADAPTERS)
def test_a_broken_adapter_fails(broken: type[EchoAdapter], test: str, tmp_path: Path) -> None:
    with pytest.raises(FAULTS):
        check(test, broken(), tmp_path)


@pytest.mark.parametrize(("broken", "test"), BROKEN_SESSIONS)
def test_a_broken_session_fails(broken: type[EchoSession], test: str, tmp_path: Path) -> None:
    adapter = EchoAdapter()
    adapter.session = broken
    with pytest.raises(FAULTS):
        check(test, adapter, tmp_path)


def test_each_test_of_the_suite_fails_some_broken_adapter() -> None:
    assert {test for _, test in [*BROKEN_ADAPTERS, *BROKEN_SESSIONS]} == set(TESTS)
