"""The server that the no-op is held against: one FastAPI route that parses the same body and returns the same bytes.

It runs as a process of its own, `python -m antiphon.bench.bare`, on the listener of the real server: same loop, same
parser of HTTP, same log settings. Nothing of the runtime, the services or the engine's threads is in it.
"""

import asyncio
import sys

import uvloop
from fastapi import FastAPI
from starlette.responses import Response

from antiphon.http.routes.tasks import result_json
from antiphon.http.schemas import TaskRunBody
from antiphon.http.server import HttpServer, address_of, bind
from antiphon.http.streaming import json_bytes
from antiphon.http.timing import timing_header, timing_json
from antiphon.ports.listener import PeerLimits, Served, StopOrder
from antiphon.runtime.api import Timing
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.signals import StopSignals
from antiphon.vocabulary.tasks import TaskResult


def bare_app() -> FastAPI:
    """The application: FastAPI reads the body into the same model, and the answer is written as ours is."""
    app = FastAPI(title="bare")
    timing = Timing()

    @app.post("/v1/tasks/run")
    async def run(body: TaskRunBody) -> Response:
        content = {**result_json(TaskResult(text=body.request.text), None), "timing": timing_json(timing)}
        return Response(json_bytes(content), media_type="application/json", headers=timing_header(timing))

    return app


async def _serve(signals: StopSignals) -> None:
    stop = StopOrder()
    signals.tell(stop.begun.set)
    with bind("127.0.0.1", 0) as bound:
        sys.stderr.write(f"bare is listening on {address_of(bound)}\n")
        sys.stderr.flush()
        await HttpServer(bound, Served(bare_app(), PeerLimits(), stop), LoopClock()).serve()


if __name__ == "__main__":
    with StopSignals() as signals, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(signals))
