"""A real server under fire, in process isolation: shots go out, what comes back is judged, and then what is left.

Every engine is a controlled one, so that an answer is never the engine's fault.
"""

import re
import socket
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from antiphon.testing import ControlledCheckpoint
from audio_assets import MULAW, tone, wav_bytes
from conformance_client import eventually
from controlled_server import CLIP
from fuzz_bodies import json_shot, management_shot
from fuzz_judge import faults_of
from fuzz_live import live_shot, realtime_shot, socket_shot
from fuzz_requests import request_shot
from fuzz_shots import FORM_TYPE, Shot, form, part, post
from fuzz_uploads import ALIGNMENTS, TASK, TRANSCRIPTIONS, audio_shot, form_shot
from fuzz_wyoming import wyoming_shot
from listener_peers import connect, leave
from process_tree import allocated_bytes, descriptor_counts, processes_of
from server_process import HANG_GUARD_S, ServerProcess, running_server

TASKS = ("tts", "asr", "align", "diar", "vad")
WAIT_MS = 1500
"""How long the server waits for a peer that owes it something. Some never give it; no good request takes so long."""

_IDLE_MS = 300
"""The same for live audio and Wyoming, where most shots end with a wait."""

_JSON = b"application/json"
_OK = b"HTTP/1.1 200 "
_MARKER = b"the content of a file that no upload may touch"
_WYOMING = re.compile(r"listening on wyoming at tcp://([^:]+):(\d+)")
_COMPLAINTS = ("Traceback", "internal error", "has ended", "cannot be worked on", "was never retrieved")
"""What the log says where something broke, though its peer may have been told something else."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a fuzzer aims at: `shot_of` gives the input of a seed, of which `width` go out at a time.

    `moves_models` says that its inputs load and unload models, so that engines come and go.
    """

    shot_of: Callable[[int], Shot]
    width: int = 1
    moves_models: bool = False


TARGETS: Mapping[str, Target] = {
    "audio": Target(audio_shot),
    "form": Target(form_shot),
    "json": Target(json_shot),
    "management": Target(management_shot, moves_models=True),
    "request": Target(request_shot, 16),
    "live": Target(live_shot, 16),
    "socket": Target(socket_shot, 16),
    "realtime": Target(realtime_shot, 16),
    "wyoming": Target(wyoming_shot, 16),
}

GOOD: Mapping[str, Shot] = {
    "speech": post(b"/v1/audio/speech", _JSON, b'{"model": "tts", "input": "good"}'),
    "transcription": post(TRANSCRIPTIONS, FORM_TYPE, form([part(b"model", b"asr"), part(b"file", CLIP, b"a.wav")])),
}
"""What is answered 200 in between."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and with which inputs it came."""

    target: str
    seeds: range
    what: str

    def __str__(self) -> str:
        """With the command that shows it again."""
        place = f"--first {self.seeds.start} --count {len(self.seeds)}"
        return f"{self.what}\n    again: python tests/fuzz_run.py {self.target} {place}"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a server holds while nobody asks anything of it."""

    pids: frozenset[int]
    descriptors: Mapping[int, int]
    files: frozenset[str]
    allocated_bytes: int


@dataclass(slots=True)
class Range:
    """A server to fire at.

    `slowest` has the longest that a target's shot took, in seconds, and its seed; `told` counts how its answers begin.
    """

    server: ServerProcess
    wyoming: tuple[str, int]
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    told: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in TARGETS})
    _log_at: int = 0

    def shoot(self, shot: Shot) -> bytes:
        """Send a shot, and read what comes of it; raises TimeoutError where nothing comes and nobody closes."""
        with _connected(self.wyoming) if shot.to_wyoming else connect(self.server.url) as peer:
            with suppress(ConnectionError):  # it has been refused already, and the rest of it with that
                peer.sendall(shot.data)
            return _received(peer, shot.marker) if shot.stays else b""

    def fire(self, name: str, seeds: range) -> list[Finding]:
        """Send the inputs of these seeds; what was wrong with the answers, or with the server afterwards."""
        target, before = TARGETS[name], self.standing()
        with ThreadPoolExecutor(target.width) as peers:
            found = [it for faults in peers.map(lambda seed: self._fire_one(name, seed), seeds) for it in faults]
        left = self.left_since(before, moves_models=target.moves_models)
        return [*found, *(Finding(name, seeds, what) for what in left)]

    def warm(self) -> None:
        """Have every process there is started, so that none is new later."""
        for task in TASKS:
            assert self.shoot(post(b"/v1/models/load", _JSON, b'{"id": "%s"}' % task.encode())).startswith(_OK)
        self._shoot_all([*GOOD.values()] * 4)

    def stretch(self) -> None:
        """Have every process at work on more than any shot brings, so that what it keeps of that is not a growth."""
        self._shoot_all(_long_shots() * 2)

    def standing(self) -> Standing:
        """What it holds now that nobody asks anything of it."""
        files = (str(it.relative_to(self.server.folder)) for it in self.server.folder.rglob("*"))
        pids = frozenset(it.pid for it in processes_of(self.server))
        return Standing(pids, descriptor_counts(self.server), frozenset(files), allocated_bytes(self.server))

    def left_since(self, before: Standing, *, moves_models: bool) -> Iterator[str]:
        """What the inputs since then have left behind, in words."""
        eventually(self._busy, lambda it: it == [], "free slots")
        eventually(lambda: [it.name for it in self.server.temp.iterdir()], lambda it: it == [], "no temporary file")
        for name, shot in GOOD.items():
            answer = self.shoot(shot)
            if not answer.startswith(_OK):
                yield f"a good request ({name}) is answered {answer[:300]!r}"
        yield from self._complaints()
        now = self.standing()
        if not moves_models and (gone := before.pids - now.pids):
            yield f"processes have ended: {sorted(gone)}"
        if new := {it for it in now.files - before.files if not it.startswith((*TASKS, "scratch"))}:
            yield f"files have been made: {sorted(new)}"
        if before.files - now.files or self.marker.read_bytes() != _MARKER:
            yield f"files are gone or changed: {sorted(before.files - now.files)}"
        if not moves_models:
            eventually(lambda: self._new_descriptors(before), lambda it: it <= 0, "no new descriptor")

    def checkpoint(self, task: str) -> ControlledCheckpoint:
        """What steers the engine of a task."""
        return ControlledCheckpoint(self.server.folder / task)

    @property
    def marker(self) -> Path:
        """A file of the server's folder that some uploads are named for."""
        return self.server.folder / "antiphon_marker.wav"

    def _shoot_all(self, shots: Sequence[Shot]) -> None:
        with ThreadPoolExecutor(4) as peers:
            for answer in peers.map(self.shoot, shots):
                assert answer.startswith(_OK), answer

    def _fire_one(self, name: str, seed: int) -> list[Finding]:
        shot = TARGETS[name].shot_of(seed)
        began = time.monotonic()
        try:
            received = self.shoot(shot)
            self.told[name][_beginning(received) if shot.stays else "left"] += 1
            found = list(faults_of(shot, received))
        except TimeoutError:
            found = ["no answer comes, and the connection is not closed"]
        except ConnectionRefusedError:
            found = ["the server is gone"]
        self.slowest[name] = max(self.slowest.get(name, (0.0, 0)), (time.monotonic() - began, seed))
        return [Finding(name, range(seed, seed + 1), what) for what in found]

    def _busy(self) -> Sequence[object]:
        models = httpx.get(f"{self.server.url}/v1/status", timeout=HANG_GUARD_S).json()["models"]
        return [it for it in models if it["leases"] or it["queue"]]

    def _complaints(self) -> Iterator[str]:
        log = self.server.log.read_text(errors="replace")
        new, self._log_at = log[self._log_at :], len(log)
        if any(it in new for it in _COMPLAINTS):
            yield f"the log has: {new[-3000:]}"

    def _new_descriptors(self, before: Standing) -> int:
        """How many more there are, a worker's line and pipes aside where one is new."""
        now = descriptor_counts(self.server)
        room = 4 * len(now.keys() - before.descriptors.keys())
        return sum(count - before.descriptors.get(pid, count) for pid, count in now.items()) - room


@contextmanager
def fuzz_range(folder: Path) -> Iterator[Range]:
    """Serve controlled models of every task, over HTTP and over Wyoming, until the block ends."""
    for name in (*TASKS, "scratch"):
        ControlledCheckpoint(folder / name)
    (folder / "sounds").mkdir()
    (folder / "sounds" / "clip.wav").write_bytes(CLIP)
    (folder / "antiphon_marker.wav").write_bytes(_MARKER)
    waits = dict.fromkeys(("header_timeout_ms", "body_timeout_ms", "keep_alive_ms"), WAIT_MS)
    config = {
        "models": [
            {"id": it, "family": "controlled", "path": it, "task": it, "slots": 2, "pinned": True} for it in TASKS
        ],
        "isolation": "process",
        "models_root": "root",
        "ui_management": True,
        "allowed_audio_roots": ["sounds"],
        "live_ingest": {"idle_timeout_ms": _IDLE_MS, "total_timeout_ms": 20_000},
        "listeners": [{"kind": "wyoming", "uri": "tcp://127.0.0.1:0", "idle_timeout_ms": _IDLE_MS}],
        "max_loaded_models": len(TASKS) + 3,
        **waits,
    }
    with running_server(folder, config, "--parallel-jobs") as server:
        found = eventually(lambda: _WYOMING.search(server.log.read_text()), lambda it: it is not None, "its address")
        assert found is not None
        fired_at = Range(server, (found[1], int(found[2])))
        fired_at.warm()
        yield fired_at


def _long_shots() -> list[Shot]:
    """Five minutes for each engine that listens: a file of a fuzzer's size has no more."""
    sound = wav_bytes(tone(440, 300, 8000), 8000, bits=8, tag=MULAW)
    heard = [part(b"file", sound, b"a.wav"), part(b"text", b"a word")]
    task = b'{"model": "%s", "request": {"audio": "%s"}}'
    return [
        post(TRANSCRIPTIONS, FORM_TYPE, form([part(b"model", b"asr"), *heard])),
        post(ALIGNMENTS, FORM_TYPE, form([part(b"model", b"align"), *heard])),
        *(post(TASK, _JSON, task % (it, b64encode(sound))) for it in (b"diar", b"vad")),
    ]


def _connected(address: tuple[str, int]) -> socket.socket:
    return connect(f"tcp://{address[0]}:{address[1]}")


def _beginning(received: bytes) -> str:
    """The status, or the kind of the first event."""
    found = re.match(rb'HTTP/1.1 (\d{3})|\{"type": "([a-z-]+)"', received)
    return "nothing" if not received else "else" if found is None else (found[1] or found[2]).decode()


def _received(peer: socket.socket, marker: bytes | None) -> bytes:
    """All that comes until the server closes, or until the marker is there."""
    received = bytearray()
    with suppress(ConnectionError):
        while piece := peer.recv(65536):
            received += piece
            if marker is not None and marker in received:
                leave(peer)
                break
    return bytes(received)
