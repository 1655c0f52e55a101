"""A transcription session: what its client says is done, in order, and what becomes of it is told. It knows no model.

A live stream is under way from the first audio on where the model finds the turns; it ends with the session, and where
the client commits, clears, or changes what is set. Otherwise audio is gathered, and each commit is a run.
"""

import asyncio

from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.frames import CloseCode

from antiphon.http.bodies import parse_json
from antiphon.http.envelope import close_code
from antiphon.http.held_bodies import share_of
from antiphon.http.live import stopping
from antiphon.http.realtime.commits import Commits, Gathered
from antiphon.http.realtime.hearing import Hearing
from antiphon.http.realtime.items import Conversation, Event, completed, error_event, event, new_id
from antiphon.http.realtime.settings import (
    OldSessionUpdate,
    SessionUpdate,
    Settings,
    old_session_json,
    session_json,
    updated,
    updated_as_of_old,
)
from antiphon.http.schemas import Body
from antiphon.http.streaming import json_bytes
from antiphon.service.audio_source import from_base64
from antiphon.service.transcription import TranscriptionService
from antiphon.vocabulary.errors import (
    AntiphonError,
    InvalidRequest,
    ModelNotFound,
    RequestTimeout,
    ShuttingDown,
    TooLarge,
)
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.spec import LiveLimits


class _Head(Body):
    """What every event of a client has."""

    type: str
    event_id: str | None = None


class _Append(Body):
    audio: str


class _Update(Body):
    session: SessionUpdate


class _OldUpdate(Body):
    session: OldSessionUpdate


class _Over(Exception):
    """The session is over; `code` is None where its client has left."""

    def __init__(self, code: CloseCode | None = None) -> None:
        super().__init__()
        self.code = code


class RealtimeSession:
    """One session over one WebSocket that is open; `run` is its life."""

    def __init__(self, socket: WebSocket, service: TranscriptionService, settings: Settings, *, is_old: bool) -> None:
        self._socket = socket
        self._service = service
        self._settings = settings
        self._is_old = is_old
        self._id = new_id("sess")
        self._conversation = Conversation(is_old=is_old)
        self._commits = Commits(self._tell)
        self._gathered: Gathered | None = None
        self._hearing: Hearing | None = None
        self._listening: asyncio.Task[None] | None = None
        self._heard_ms = 0  # by the streams that are over

    async def run(self) -> None:
        """Serve until the client leaves, the server stops, or a stream fails; then close, with every slot free."""
        code: CloseCode | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._heed_stop())
                tasks.create_task(self._commits.run(self._service))
                await self._tell(self._session_event("created"))
                await self._read()
        except* _Over as ends:
            code = next((end.code for end in ends.exceptions if isinstance(end, _Over)), None)
        except* WebSocketDisconnect:
            pass
        finally:
            self._drop_gathered()
        if code is not None and self._socket.application_state is WebSocketState.CONNECTED:
            await self._socket.close(code)

    async def _read(self) -> None:
        while True:
            message = await self._next_message()
            if message["type"] == "websocket.disconnect":
                raise _Over
            said = message.get("text")
            raw = message["bytes"] if said is None else said.encode("utf-8", "surrogatepass")
            event_id: str | None = None
            try:
                head = await parse_json(raw, _Head)
                event_id = head.event_id
                await self._do(head.type, raw)
            except AntiphonError as error:
                await self._tell(error_event(error, event_id))

    async def _next_message(self) -> Message:
        """What the client says next. Audio that it does not commit in time is dropped, and it is told."""
        while True:
            try:
                async with asyncio.timeout_at(self._uncommitted_until()):
                    return await self._socket.receive()
            except TimeoutError:
                self._drop_gathered()
                told = "the audio was not committed in time (live_ingest.total_timeout_ms), and is dropped"
                await self._tell(error_event(RequestTimeout(told)))

    def _uncommitted_until(self) -> float | None:
        """When audio that was gathered must have been committed, in the loop's seconds; None where nothing must."""
        limit_s = 0.0 if self._gathered is None else self._limits().total_timeout_s
        return self._gathered.begun_at + limit_s if self._gathered is not None and limit_s else None

    async def _do(self, kind: str, raw: bytes) -> None:
        match kind:
            case "input_audio_buffer.append":
                audio = (await parse_json(raw, _Append)).audio
                await self._append(await from_base64(audio, "audio"))
            case "input_audio_buffer.commit":
                await self._commit()
            case "input_audio_buffer.clear":
                await self._clear()
            case "session.update":
                update = (await parse_json(raw, _Update)).session
                await self._set(updated(self._settings, update))
            case "transcription_session.update":
                old_update = (await parse_json(raw, _OldUpdate)).session
                await self._set(updated_as_of_old(self._settings, old_update))
            case _:
                raise InvalidRequest(f"a transcription session has no use for {kind[:60]!r}", param="type")

    async def _append(self, data: bytes) -> None:
        if self._settings.detects_turns:
            await self._hear(data)
            return
        # No request exists before the commit, so no lease does: what bounds a session's memory is what holds now.
        limits = self._service.live_limits(self._settings.order().model)
        if len(data) > limits.max_chunk_bytes:
            told = f"a message is larger than the limit of {limits.max_chunk_bytes} bytes (live_ingest.max_chunk_bytes)"
            raise TooLarge(told, param="audio")
        if self._gathered is None:
            self._gathered = Gathered(self._settings.wire, share_of(self._socket.scope).beside())
        limit = limits.max_body_bytes
        if 0 < limit < self._commits.waiting_bytes + self._gathered.size_bytes + len(data):
            raise TooLarge(f"audio that has no transcript yet may have {limit} bytes (live_ingest)", param="audio")
        self._gathered.add(data)

    async def _hear(self, data: bytes) -> None:
        if self._hearing is None:
            self._require_running()
            hearing = Hearing(self._settings, self._conversation, self._heard_ms, self._tell)
            self._hearing = hearing
            self._listening = self._tasks.create_task(self._listen(hearing))
        await self._hearing.put(data)

    async def _listen(self, hearing: Hearing) -> None:
        """Carry a stream. One that reaches a limit frees its slot, and the next audio begins another."""
        try:
            await hearing.run(self._service)
        except (RequestTimeout, TooLarge) as error:
            await self._tell(error_event(error))
        except AntiphonError as error:
            if isinstance(error, ShuttingDown) and self._is_stopping:
                return  # to end the session now would cancel its commits; `_heed_stop` says so once they are done
            await self._tell(error_event(error))
            raise _Over(close_code(error)) from error
        finally:
            self._forget(hearing)

    def _forget(self, hearing: Hearing) -> None:
        """It is over; may be called again."""
        if self._hearing is hearing:
            self._heard_ms = hearing.end_ms
            self._hearing = self._listening = None

    async def _commit(self) -> None:
        self._require_running()
        if self._settings.detects_turns:
            hearing = self._hearing
            if hearing is None:
                raise InvalidRequest("there is no audio to commit")
            await self._end_hearing()
            if not hearing.items:
                await self._tell_silence()
            return
        gathered = self._gathered
        if not gathered:
            raise InvalidRequest("there is no audio to commit")
        self._commits.require_room()
        item_id = new_id("item")
        self._commits.put(item_id, self._settings, gathered)
        self._gathered = None
        await self._tell_all(self._conversation.commit(item_id))

    async def _clear(self) -> None:
        self._drop_gathered()
        if self._hearing is not None and self._listening is not None:
            hearing = self._hearing
            self._listening.cancel()
            await asyncio.wait((self._listening,))
            self._forget(hearing)  # a task that had not begun does not do so itself
        await self._tell(event("input_audio_buffer.cleared"))

    async def _set(self, settings: Settings) -> None:
        """Take new settings, after what was heard under the old ones; raises what they would be refused for."""
        require_possible(settings, self._service)
        if settings != self._settings:
            await self._end_hearing()
            self._drop_gathered()
            self._settings = settings
        await self._tell(self._session_event("updated"))

    async def _end_hearing(self) -> None:
        """Have what was heard told of to its end."""
        if self._hearing is not None and self._listening is not None:
            self._hearing.end()
            await asyncio.wait((self._listening,))

    @property
    def _is_stopping(self) -> bool:
        return stopping(self._socket.scope).is_set()

    def _require_running(self) -> None:
        """Raise ShuttingDown if nothing new may begin."""
        if self._is_stopping:
            raise ShuttingDown

    async def _heed_stop(self) -> None:
        """End the session once what was committed is transcribed; a live stream has no end that could be waited for."""
        await stopping(self._socket.scope).wait()
        if self._hearing is not None and self._listening is not None:
            self._hearing.end(ShuttingDown())
            await asyncio.wait((self._listening,))
        await self._commits.idle()
        await self._tell(error_event(ShuttingDown()))
        raise _Over(CloseCode.GOING_AWAY)

    def _drop_gathered(self) -> None:
        if self._gathered is not None:
            self._gathered.close()
            self._gathered = None

    def _session_event(self, what: str) -> Event:
        if self._is_old:
            return event(f"transcription_session.{what}", session=old_session_json(self._id, self._settings))
        return event(f"session.{what}", session=session_json(self._id, self._settings))

    async def _tell_silence(self) -> None:
        item_id = new_id("item")
        await self._tell_all([*self._conversation.commit(item_id), completed(item_id, "", 0.0)])

    async def _tell_all(self, events: list[Event]) -> None:
        for told in events:
            await self._tell(told)

    async def _tell(self, told: Event) -> None:
        """Send an event; a client that does not take it in time has left."""
        try:
            async with asyncio.timeout(self._send_timeout_s() or None):
                await self._socket.send_text(json_bytes(told).decode())
        except TimeoutError:
            raise _Over from None

    def _send_timeout_s(self) -> float:
        """The limit of the session's model, as it is now: under the lease while a stream is open."""
        return self._limits().send_timeout_s

    def _limits(self) -> LiveLimits:
        try:
            return self._service.live_limits(self._settings.model or "")
        except ModelNotFound:  # no model is set, or the alias that named it is gone
            return LiveLimits()


def require_possible(settings: Settings, service: TranscriptionService) -> None:
    """Raise ModelNotFound or InvalidRequest for settings that no audio could be heard under."""
    base_language(settings.language)
    if settings.model:
        service.live_limits(settings.model)
