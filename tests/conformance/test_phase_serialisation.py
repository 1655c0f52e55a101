"""The cell `phase.executing` where its end is: a result that is still being serialised.

Nothing outside a server can hold an answer's encoding open, so the services are called directly, over a real runtime
and real engines.
"""

import asyncio
import io

import pytest

import audio_assets
from antiphon.audio.decode import DecodeLimits
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.parallel import ParallelServerState
from antiphon.service.alignment import AlignmentOrder, AlignmentService
from antiphon.service.speech import SpeechOrder, SpeechService
from antiphon.service.tasks import Heard, TaskOrder, TaskService
from antiphon.service.transcription import TranscriptionOrder, TranscriptionService
from antiphon.vocabulary.states import Isolation, ModelState, Operation
from antiphon.vocabulary.tasks import Task
from conformance_evidence import first, last, steps
from conformance_plugin import cell
from host_stage import make_host
from runtime_stage import Kind, Stage, order

TEXT_LIMIT = 100
CLIP = audio_assets.wav_bytes(audio_assets.tone(440, 0.5))


class HeldCodec(ThreadCodec):
    """A codec whose encodings do not end before `let_go`."""

    def __init__(self):
        super().__init__(DecodeLimits(max_seconds=60), 0, threads=1)
        self._begun = asyncio.Semaphore(0)
        self._is_let_go = asyncio.Event()

    async def encode(self, pcm, audio_format):
        await self.hold()
        return await super().encode(pcm, audio_format)

    async def hold(self):
        self._begun.release()
        await self._is_let_go.wait()

    async def wait_begun(self, count):
        for _ in range(count):
            await self._begun.acquire()

    def let_go(self):
        self._is_let_go.set()

    async def at_end(self):
        self.let_go()
        await self.terminate()


@pytest.fixture
def stage(tmp_path, slots, isolation):
    staged = Stage(tmp_path, Kind(ParallelServerState, slots))
    staged.make_host = lambda spec: make_host(Isolation(isolation), spec, lambda: None)
    return staged


@pytest.fixture
def codec():
    return HeldCodec()


def leases(stage):
    """The slots that are taken, over all models, and what for."""
    return [(lease.slot, lease.operation) for status in stage.runtime.status() for lease in status.gate.leases]


async def finish(stage, codec, text):
    """Run with a serialisation of the test's own."""

    async def held(result, timing):
        await codec.hold()
        return result.text

    return await stage.runtime.run(order(text), held)


async def run_task(stage, codec, text):
    service = TaskService(stage.runtime, codec, TEXT_LIMIT)
    return await service.run(TaskOrder("a", text), Heard(), lambda done: done.result.text)


async def speak(stage, codec, text):
    service = SpeechService(stage.runtime, codec, TEXT_LIMIT)
    with (await service.speak(SpeechOrder("a", text))).encoded.body as body:
        assert body.read(4) == b"RIFF"


@cell("phase.executing", "unit")
@pytest.mark.parametrize("serialise", [finish, run_task, speak], ids=lambda it: it.__name__)
async def test_phase_executing_until_its_result_is_serialised(codec, stage, slots, serialise):
    checkpoint = stage.model("a")
    calls = [asyncio.ensure_future(serialise(stage, codec, f"own {number}")) for number in range(slots)]
    await codec.wait_begun(slots)
    assert steps(checkpoint, "ran") == ["ran"] * slots  # the engine is done with all of them
    held = [(slot, Operation.INFER) for slot in range(slots)]
    assert leases(stage) == held
    replacing = stage.register(stage.registration("a", folder="b"))
    await stage.waiting(1)
    queued = stage.say("queued")
    await stage.waiting(2)

    (status,) = stage.runtime.status()
    assert leases(stage) == held
    assert [waiter.operation for waiter in status.gate.queue] == [Operation.LOAD, Operation.INFER]
    assert (status.view.state, status.view.loaded) == (ModelState.READY, True)
    assert status.view.registration.spec.path == str(checkpoint.path)  # the configuration that they were bound to
    assert steps(checkpoint, "destroy") == []

    codec.let_go()
    said = await asyncio.gather(*calls)
    assert serialise is speak or {text.split("|")[0] for text in said} == {"a"}
    assert (await replacing).loaded
    assert (await queued).startswith("b|")
    assert last(checkpoint, "ran") < first(checkpoint, "destroy")
    assert stage.state() is ModelState.READY


def transcribe(stage, codec, render):
    service = TranscriptionService(stage.runtime, codec)
    return service.transcribe(TranscriptionOrder("a"), io.BytesIO(CLIP), render)


def tell_speakers(stage, codec, render):
    stage.model("asr", Task.ASR)
    service = TranscriptionService(stage.runtime, codec)
    return service.transcribe_speakers(TranscriptionOrder("asr"), "a", io.BytesIO(CLIP), render)


def align(stage, codec, render):
    service = AlignmentService(stage.runtime, codec, TEXT_LIMIT)
    return service.align(AlignmentOrder("a", "word by word"), io.BytesIO(CLIP), render)


def detect(stage, codec, render):
    service = TaskService(stage.runtime, codec, TEXT_LIMIT)
    return service.run(TaskOrder("a"), Heard(io.BytesIO(CLIP)), render)


@cell("phase.executing", "unit")
@pytest.mark.parametrize(
    ("task", "answer"),
    [(Task.ASR, transcribe), (Task.DIAR, tell_speakers), (Task.ALIGN, align), (Task.VAD, detect)],
    ids=["transcript", "speakers", "alignment", "task"],
)
async def test_phase_executing_until_its_answer_is_rendered(codec, stage, slots, task, answer):
    """What an answer without audio looks like is computed in one step, which must be a step under the lease."""
    checkpoint = stage.model("a", task)
    seen = []

    def render(done):
        seen.append(leases(stage))
        return done

    assert await answer(stage, codec, render)
    assert seen == [[(0, Operation.INFER)]]
    assert steps(checkpoint, "ran") == ["ran"]
    assert leases(stage) == []
