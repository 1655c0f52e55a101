"""The suite that an adapter runs against itself; it knows the adapter Protocols and no engine.

Subclass `AdapterTests` in a test module and override its fixtures. This module is the only one that imports pytest.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final as Constant

import pytest

from antiphon.ports.adapter import Adapter, BatchSession, LoadedModel, OfflineSession, Session, StreamingSession
from antiphon.testing.calls import answer, answer_or_none, check_units, chunks_of, close_stream, whole_stream
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError, ConfigError, InvalidRequest, RequestTimeout
from antiphon.vocabulary.spec import MAX_SLOTS, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import (
    Cancellation,
    Interface,
    TaskRequest,
    TaskResult,
)

PROTOCOLS: Constant[Mapping[Interface, type]] = {
    Interface.OFFLINE: OfflineSession,
    Interface.BATCH: BatchSession,
    Interface.STREAMING: StreamingSession,
}
LIVE_FRAMES: Constant = 1600
"""How long a chunk of live audio usually is, in frames."""
HANG_GUARD_S: Constant = 300.0
"""No test waits for this long unless the adapter hangs. Units: seconds."""


class OpenSessions:
    """The sessions that one test opened over shared weights; whatever is still open is closed at its end."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self._open: list[Session] = []

    def primary(self) -> Session:
        """Open one more primary, which fails the test when there is none."""
        return self._keep(self._loaded.open_session())

    def streaming(self) -> StreamingSession:
        """Open a primary that streams; skips the test when the adapter does not."""
        session = self.primary()
        if Interface.STREAMING not in session.interfaces:
            pytest.skip("this adapter does not stream")
        assert isinstance(session, StreamingSession)
        return session

    def listening(self, requests: Sequence[TaskRequest]) -> tuple[StreamingSession, TaskRequest, Pcm]:
        """Open a primary that takes live audio, with a request for it; skips the test when the adapter does not."""
        session = self.streaming()
        audio = requests[0].audio
        if audio is None:
            pytest.skip("this adapter is asked about no audio")
        request = replace(requests[0], audio=None, live=True)
        try:
            session.prepare(request)
        except InvalidRequest:
            pytest.skip("this adapter takes no live audio")
        return session, request, audio

    def clone(self, primary: Session) -> Session:
        """Clone a session; skips the test when the adapter has one slot only."""
        if primary.capacity == 1:
            pytest.skip("this adapter has one slot only")
        clone = self._keep(primary.clone())
        assert clone is not primary
        return clone

    def close(self, session: Session) -> None:
        """Close one session now."""
        self._open.remove(session)
        session.close()

    def close_all(self) -> None:
        """Close the rest, the newest first."""
        while self._open:
            self._open.pop().close()

    def _keep(self, session: Session | None) -> Session:
        assert session is not None, "the engine gave no session"
        self._open.append(session)
        assert isinstance(session, Session)
        return session


class AdapterTests:
    """What the runtime relies on in every adapter, as tests.

    Override `adapter`, `spec` and `requests`; override `bad_request` where there is one. Override `loaded` with a wider
    scope when a load is dear, and `comparable` when answers name the session that gave them.
    """

    @pytest.fixture
    def adapter(self) -> Adapter:
        """The adapter under test."""
        raise NotImplementedError("override the fixture `adapter`")

    @pytest.fixture
    def spec(self) -> ModelSpec:
        """A model that is installed; give it two slots or more when the engine can clone."""
        raise NotImplementedError("override the fixture `spec`")

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        """At least two requests with different answers, audio at the session's rate and channels."""
        raise NotImplementedError("override the fixture `requests`")

    @pytest.fixture
    def bad_request(self) -> TaskRequest | None:
        """A request that must raise InvalidRequest, in `prepare` or in the call itself; None when there is none."""
        return None

    @pytest.fixture
    def loaded(self, adapter: Adapter, spec: ModelSpec) -> Iterator[LoadedModel]:
        """The weights; each test opens its own sessions over them."""
        model = adapter.load(spec)
        yield model
        model.close()

    @pytest.fixture
    def sessions(self, loaded: LoadedModel) -> Iterator[OpenSessions]:
        """Opens the sessions of one test and closes them before the weights go."""
        opened = OpenSessions(loaded)
        yield opened
        opened.close_all()

    def comparable(self, result: TaskResult) -> object:
        """What of an answer must be equal for equal requests; by default all of it."""
        return result

    # What the files say.

    def test_the_family_is_the_one_that_the_spec_names(self, adapter: Adapter, spec: ModelSpec) -> None:
        assert isinstance(adapter, Adapter)
        assert adapter.family == spec.family

    def test_inspect_is_repeatable_and_leaves_the_files_alone(self, adapter: Adapter, spec: ModelSpec) -> None:
        before = _listing(Path(spec.path))
        assert adapter.inspect(spec) == adapter.inspect(spec)
        assert _listing(Path(spec.path)) == before

    def test_inspect_tells_a_sane_capability(self, adapter: Adapter, spec: ModelSpec) -> None:
        capability = adapter.inspect(spec)
        assert spec.task in capability.tasks
        assert spec.mode in capability.modes
        assert capability.sample_rate > 0
        assert capability.channels > 0
        assert capability.weight_bytes >= 0
        names = [option.name for option in capability.options]
        assert len(names) == len(set(names))
        assert len(capability.voices) == len(set(capability.voices))
        for option in capability.options:
            if option.minimum is not None and option.maximum is not None:
                assert option.minimum <= option.maximum
            assert not option.choices or option.type == "string"

    def test_inspect_of_a_missing_model_is_a_configuration_error(
        self, adapter: Adapter, spec: ModelSpec, tmp_path: Path
    ) -> None:
        with pytest.raises(ConfigError):
            adapter.inspect(replace(spec, path=str(tmp_path / "missing")))

    # What a session says of itself.

    def test_the_primary_is_what_the_spec_and_the_capability_say(
        self, adapter: Adapter, spec: ModelSpec, sessions: OpenSessions
    ) -> None:
        capability = adapter.inspect(spec)
        facts = _facts(sessions.primary())
        assert (facts.family, facts.task, facts.mode) == (spec.family, spec.task, spec.mode)
        assert (facts.sample_rate, facts.channels) == (capability.sample_rate, capability.channels)

    def test_each_declared_interface_exists(self, sessions: OpenSessions) -> None:
        session = sessions.primary()
        assert session.interfaces
        for interface in session.interfaces:
            assert isinstance(session, PROTOCOLS[interface])

    def test_the_capacity_covers_the_slots_of_the_spec(self, spec: ModelSpec, sessions: OpenSessions) -> None:
        assert spec.slots <= sessions.primary().capacity <= MAX_SLOTS

    def test_a_clone_agrees_with_its_primary(self, sessions: OpenSessions) -> None:
        primary = sessions.primary()
        assert _facts(sessions.clone(primary)) == _facts(primary)

    # What a session answers.

    def test_equal_requests_get_equal_answers(self, sessions: OpenSessions, requests: Sequence[TaskRequest]) -> None:
        session = sessions.primary()
        first = self._answers(session, requests)
        assert self._answers(session, requests) == first
        assert first[0] != first[1], "`requests` must differ in their answers"

    def test_spans_and_audio_are_in_the_units_of_the_session(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session = sessions.primary()
        for request in requests:
            check_units(session, answer(session, request))

    def test_interleaved_sessions_answer_as_a_fresh_one_does(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        primary = sessions.primary()
        clone = sessions.clone(primary)
        for request in requests:
            fresh = self._answers(sessions.primary(), [request])
            assert self._answers(primary, [request]) == fresh
            assert self._answers(clone, [request]) == fresh

    def test_concurrent_sessions_answer_as_one_does_serially(
        self, spec: ModelSpec, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        serial = self._answers(sessions.primary(), requests)
        primary = sessions.primary()
        pool = [primary, *(sessions.clone(primary) for _ in range(1, min(spec.slots, primary.capacity)))]
        answers: dict[int, list[object]] = {}

        together = threading.Barrier(len(pool))

        def work(slot: int) -> None:
            together.wait(HANG_GUARD_S)
            turn = slot % len(requests)
            rotated = self._answers(pool[slot], [*requests[turn:], *requests[:turn]])
            answers[slot] = rotated[len(requests) - turn :] + rotated[: len(requests) - turn]

        threads = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in range(len(pool))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_GUARD_S)
        assert answers == dict.fromkeys(range(len(pool)), serial)

    def test_a_bad_request_is_refused_and_changes_nothing(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest], bad_request: TaskRequest | None
    ) -> None:
        if bad_request is None:
            pytest.skip("this adapter names no bad request")
        session = sessions.primary()
        before = self._answers(session, requests)
        with pytest.raises(InvalidRequest):
            answer(session, bad_request)
        assert self._answers(session, requests) == before

    def test_a_cancelled_request_ends_and_changes_nothing(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session = sessions.primary()
        before = self._answers(session, requests)
        gone = Cancellation()
        gone.cancel()
        with suppress(AntiphonError):  # an early end may be told as a domain error, not as any other exception
            answer_or_none(session, replace(requests[0], cancellation=gone))
        assert self._answers(session, requests) == before

    # Streams.

    def test_a_stream_joins_to_its_final_result(self, sessions: OpenSessions, requests: Sequence[TaskRequest]) -> None:
        session = sessions.streaming()
        for request in requests:
            streamed = whole_stream(session, request)
            check_units(session, streamed.final)
            if streamed.audio:
                assert streamed.final.audio is None, "the final result repeats no audio"
            if streamed.text:
                assert streamed.text == streamed.final.text
            if streamed.turns:
                assert streamed.turns == streamed.final.speaker_turns

    def test_equal_streams_have_equal_pieces(self, sessions: OpenSessions, requests: Sequence[TaskRequest]) -> None:
        session = sessions.streaming()
        first = whole_stream(session, requests[0])
        again = whole_stream(session, requests[0])
        assert again.audio == first.audio
        assert self.comparable(again.final) == self.comparable(first.final)

    def test_a_stream_that_was_closed_early_leaves_the_session_fit(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session = sessions.streaming()
        before = whole_stream(session, requests[1])
        session.prepare(requests[0])
        events = session.stream(requests[0], None)
        next(events)
        close_stream(events)
        session.reset()
        after = whole_stream(session, requests[1])
        assert after.audio == before.audio
        assert self.comparable(after.final) == self.comparable(before.final)

    # Live audio.

    def test_live_audio_joins_to_its_final_result(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session, request, audio = sessions.listening(requests)
        streamed = whole_stream(session, request, chunks_of(audio, LIVE_FRAMES))
        check_units(session, streamed.final)
        if streamed.text:
            assert streamed.text == streamed.final.text

    def test_live_audio_that_is_over_at_once_has_a_result(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session, request, _ = sessions.listening(requests)
        check_units(session, whole_stream(session, request, iter(())).final)

    def test_the_edges_of_live_chunks_change_nothing(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session, request, audio = sessions.listening(requests)
        streams = [whole_stream(session, request, chunks_of(audio, n)) for n in (LIVE_FRAMES, 997, audio.frames)]
        finals = [self.comparable(streamed.final) for streamed in streams]
        assert finals == finals[:1] * len(finals)
        assert [streamed.pieces for streamed in streams] == [streams[0].pieces] * len(streams)

    def test_a_live_source_that_fails_ends_the_stream_alone(
        self, sessions: OpenSessions, requests: Sequence[TaskRequest]
    ) -> None:
        session, request, audio = sessions.listening(requests)
        before = whole_stream(session, request, chunks_of(audio, LIVE_FRAMES))
        with pytest.raises(RequestTimeout):
            whole_stream(session, request, _failing(chunks_of(audio, LIVE_FRAMES)))
        after = whole_stream(session, request, chunks_of(audio, LIVE_FRAMES))
        assert self.comparable(after.final) == self.comparable(before.final)

    # Batches.

    def test_a_batch_yields_every_index_once(self, sessions: OpenSessions, requests: Sequence[TaskRequest]) -> None:
        session = sessions.primary()
        if Interface.BATCH not in session.interfaces:
            pytest.skip("this adapter takes no batches")
        assert isinstance(session, BatchSession)
        for request in requests:
            session.prepare(request)
        results = list(session.run_batch(requests))
        assert sorted(index for index, _ in results) == list(range(len(requests)))
        for _, result in results:
            check_units(session, result)

    # The end.

    def test_a_clone_outlives_its_primary(self, sessions: OpenSessions, requests: Sequence[TaskRequest]) -> None:
        primary = sessions.primary()
        clone = sessions.clone(primary)
        before = self._answers(primary, requests)
        sessions.close(primary)
        assert self._answers(clone, requests) == before

    def test_a_second_load_answers_as_the_first_did(
        self, adapter: Adapter, spec: ModelSpec, requests: Sequence[TaskRequest]
    ) -> None:
        answers: list[list[object]] = []
        for _ in range(2):
            model = adapter.load(spec)
            sessions = OpenSessions(model)
            answers.append(self._answers(sessions.primary(), requests))
            sessions.close_all()
            model.close()
        assert answers[0] == answers[1]

    def _answers(self, session: Session, requests: Sequence[TaskRequest]) -> list[object]:
        return [self.comparable(answer(session, request)) for request in requests]


def _facts(session: Session) -> SessionFacts:
    """All that a clone must share with its primary; the capacity is the primary's to tell."""
    return SessionFacts(
        session.family,
        session.task,
        session.mode,
        session.interfaces,
        session.sample_rate,
        session.channels,
        capacity=1,
    )


def _failing(chunks: Iterator[AudioChunk]) -> Iterator[AudioChunk]:
    """One chunk, and then nothing for too long."""
    yield next(chunks)
    raise RequestTimeout("no audio came")


def _listing(path: Path) -> list[tuple[str, int, int]]:
    """Every file of a model with its size and time of change, in nanoseconds."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
