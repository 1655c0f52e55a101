"""The audio that a client commits itself: gathered in a file, and transcribed one item after another."""

import asyncio
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import BinaryIO, cast

from antiphon.http.held_bodies import BodyShare
from antiphon.http.realtime.items import Event, completed, delta, failed
from antiphon.http.realtime.settings import Settings
from antiphon.http.realtime.sound import Wire
from antiphon.service.transcription import TranscriptionOrder, TranscriptionService
from antiphon.vocabulary.errors import AntiphonError, ServerBusy

_MEMORY_BYTES = 1024 * 1024
"""What of the audio is kept in memory; beyond it lies in an unlinked file."""

_MAX_WAITING = 16
"""How many items of a session may wait for their transcripts."""


class Gathered:
    """Audio that is not committed yet, as a WAV file of its wire's form.

    `share` is what it holds of the budget of all bodies. Units: `begun_at` in the loop's seconds.
    """

    def __init__(self, wire: Wire, share: BodyShare) -> None:
        self.wire = wire
        self.begun_at = asyncio.get_running_loop().time()
        self._share = share
        self._is_in_file = False
        self.size_bytes = 0
        # An unlinked file, or none yet; whoever takes the audio closes it.
        spool = tempfile.SpooledTemporaryFile(_MEMORY_BYTES, prefix="antiphon-")  # noqa: SIM115
        self.body = cast(BinaryIO, spool)  # typeshed does not say that it is one
        self.body.write(wire.wav_header())

    @property
    def seconds(self) -> float:
        """How long it sounds."""
        return self.wire.seconds(self.size_bytes)

    def __bool__(self) -> bool:
        return self.size_bytes >= self.wire.sample_bytes

    def add(self, data: bytes) -> None:
        """Keep more; raises ServerBusy if all bodies together hold too much, or too many files."""
        if not self._is_in_file and self.body.tell() + len(data) > _MEMORY_BYTES:
            # Before the bytes are counted: after a refusal of either, nothing is counted that a retry counts again.
            self._share.add_file()
            self._is_in_file = True
        self._share.add(len(data))
        self.body.write(data)
        self.size_bytes += len(data)

    def close(self) -> None:
        """Drop it."""
        self._share.release()
        with suppress(OSError):  # on a full disk, closing tries once more to write what could not be written
            self.body.close()


@dataclass(frozen=True, slots=True)
class _Commit:
    item_id: str
    order: TranscriptionOrder
    audio: Gathered


class Commits:
    """The items that wait for their transcripts; `run` makes them, each a run of its own."""

    def __init__(self, tell: Callable[[Event], Awaitable[None]]) -> None:
        self._tell = tell
        self._waiting: deque[_Commit] = deque()
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting_bytes(self) -> int:
        """How much audio waits."""
        return sum(it.audio.size_bytes for it in self._waiting)

    def require_room(self) -> None:
        """Raise ServerBusy where one more would be too many."""
        if len(self._waiting) >= _MAX_WAITING:
            raise ServerBusy(f"{_MAX_WAITING} items of this session wait for their transcripts")

    def put(self, item_id: str, settings: Settings, audio: Gathered) -> None:
        """Have an item transcribed after the earlier ones; its audio is closed then."""
        self._waiting.append(_Commit(item_id, settings.order(), audio))
        self._idle.clear()
        self._changed.set()

    async def idle(self) -> None:
        """Return once nothing waits or runs."""
        await self._idle.wait()

    async def run(self, service: TranscriptionService) -> None:
        """Transcribe until it is cancelled; a run that fails is told of, and the next one begins."""
        with ExitStack() as left:
            left.callback(self._drop)
            while True:
                while not self._waiting:
                    self._idle.set()
                    self._changed.clear()
                    await self._changed.wait()
                commit = self._waiting[0]
                for told in await _transcribed(service, commit):
                    await self._tell(told)
                self._waiting.popleft().audio.close()

    def _drop(self) -> None:
        while self._waiting:
            self._waiting.popleft().audio.close()


async def _transcribed(service: TranscriptionService, commit: _Commit) -> list[Event]:
    commit.audio.body.seek(0)
    try:
        # It was accepted when it was committed, and a session takes no commit once the server stops.
        text = await service.transcribe(
            commit.order, commit.audio.body, lambda it: it.result.text or "", continues=True
        )
    except AntiphonError as error:
        return [failed(commit.item_id, error)]
    pieces = [delta(commit.item_id, text)] if text else []
    return [*pieces, completed(commit.item_id, text, commit.audio.seconds)]
