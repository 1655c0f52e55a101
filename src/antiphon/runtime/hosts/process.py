"""An engine in a worker process of its own: what it does to its process, the server survives."""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from antiphon.runtime.hosts import messages, translation
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.hosts.messages import Answer
from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.flow import RemoteFlow
from antiphon.runtime.wire.worker import WorkerProcess
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import StreamEvent, TaskRequest, TaskResult

T = TypeVar("T", bound=Message)

WORKER = "antiphon.worker"
"""The module that a worker runs; the server never imports it."""


class ProcessHost:
    """`SlotHost` over one worker process; `adapter` is where to find the engine, as "module:Class".

    The process starts with the first call, so on the loop's own thread.
    """

    killable = True

    def __init__(self, adapter: str, spec: ModelSpec, on_death: Callable[[], None]) -> None:
        self._begin = messages.Begin(adapter, translation.spec_told(spec))
        self._worker: WorkerProcess[Answer] = WorkerProcess(spec.id, WORKER, messages.answer_decoder(), on_death)
        self._started = False

    @property
    def pid(self) -> int | None:
        """The worker's number, while there is one."""
        return self._worker.pid

    async def inspect(self) -> Capability:
        """Read the model's files."""
        return (await self._ask(messages.Inspect(), messages.Inspected)).capability

    async def load(self) -> None:
        """Import the engine and read the weights."""
        await self._ask(messages.Load(), messages.Done)

    async def open(self) -> SessionFacts | None:
        """Open the primary session behind slot 0."""
        return (await self._ask(messages.Open(), messages.Opened)).facts

    async def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a session as `spec` has it, say what it is and close it."""
        return (await self._ask(messages.Probe(translation.spec_told(spec)), messages.Opened)).facts

    async def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary behind `slot`."""
        return (await self._ask(messages.Clone(slot), messages.Opened)).facts

    async def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Prepare and run one request on the slot's thread of the worker."""
        asked, sounds = translation.request_told(request)
        asking = self._worker.ask(messages.Run(slot, asked), sounds, [request.cancellation])
        del request, sounds  # once it is sent, the worker has the only copy of the audio
        answer, parcel = await asking
        return translation.result_of(_expected(answer, messages.Result), parcel.take())

    async def run_batch(self, slot: int, requests: Sequence[TaskRequest]) -> RemoteFlow[Answer, tuple[int, TaskResult]]:
        """Prepare every request, then start the batch on the slot's thread of the worker."""
        asked, sounds = translation.requests_told(requests)
        cancellations = [request.cancellation for request in requests]
        flow = RemoteFlow(self._worker, translation.answer_of, cancellations)
        return await flow.begin(messages.RunBatch(slot, asked), sounds)

    async def stream(
        self, slot: int, request: TaskRequest, audio: AsyncIterator[AudioChunk] | None
    ) -> RemoteFlow[Answer, StreamEvent]:
        """Prepare the request, then start its stream on the slot's thread of the worker."""
        asked, sounds = translation.request_told(request)
        flow = RemoteFlow(self._worker, translation.event_of, [request.cancellation], audio)
        return await flow.begin(messages.Stream(slot, asked), sounds)

    async def close(self) -> None:
        """Close the sessions, then the weights; where the process has ended there is nothing left to close."""
        if self._started and self._worker.death is None:
            await self._ask(messages.Close(), messages.Done)

    async def terminate(self) -> None:
        """Let the process end, and wait until it is gone."""
        await self._worker.end()

    def kill(self) -> None:
        """End the process now."""
        self._worker.kill()

    @property
    def death(self) -> str | None:
        """How the worker ended, in words; None while it lives."""
        return self._worker.death

    async def resident_bytes(self) -> int | None:
        """Proportional set size of the worker, in bytes; None where the kernel does not tell."""
        pid = self._worker.pid
        if pid is None:
            return None
        crew = Crew("antiphon-meter")  # the kernel walks all of its pages meanwhile
        try:
            return await crew.call(_pss_bytes, pid)
        finally:
            crew.stop()

    async def _ask(self, order: Message, kind: type[T]) -> T:
        if not self._started:
            await self._worker.start()
            self._started = True
            self._worker.tell(self._begin)
        answer, _ = await self._worker.ask(order)
        return _expected(answer, kind)


def _expected(answer: Answer, kind: type[T]) -> T:
    if not isinstance(answer, kind):
        raise EngineError("the worker gave an answer to another question")
    return answer


def _pss_bytes(pid: int) -> int | None:
    """Source: Linux, Documentation/filesystems/proc.rst, smaps_rollup."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes_kb = (line.split()[1] for line in lines if line.startswith("Pss:"))
    return next((int(size_kb) * 1024 for size_kb in sizes_kb), None)
