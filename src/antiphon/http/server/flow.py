"""Whether a connection is read from: uvicorn's flow control, with a second reason to stop."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl


class PipelineFlow(FlowControl):
    """Reading is paused while a body is ahead of its reader, and also while requests wait behind one that runs.

    uvicorn resumes reading whenever an application receives, whether or not requests wait. A peer that pipelines could
    then have as many of them held as it can send.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_held = False

    def hold(self) -> None:
        """Pause reading until `release`, whoever resumes it meanwhile."""
        self._is_held = True
        self.pause_reading()

    def release(self) -> None:
        """Resume reading."""
        self._is_held = False
        self.resume_reading()

    def resume_reading(self) -> None:
        """As uvicorn's, unless reading is held."""
        if not self._is_held:
            super().resume_reading()
