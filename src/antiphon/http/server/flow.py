"""Whether a connection is read from: uvicorn's flow control, with a second reason to stop."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl


class PipelineFlow(FlowControl):
    """Reading is paused while a body is ahead of its reader, and also while what was read is not parsed.

    uvicorn resumes reading whenever an application receives, whether or not requests wait. A peer that pipelines could
    then have as many of them held as it can send.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.is_held = False
        self._is_full = False  # uvicorn's own reason

    def hold(self) -> None:
        """Pause reading until `release`, whoever resumes it meanwhile."""
        self.is_held = True
        super().pause_reading()

    def release(self) -> None:
        """Resume reading, unless there is still too much of a body."""
        self.is_held = False
        if not self._is_full:
            super().resume_reading()

    def pause_reading(self) -> None:
        """As uvicorn's."""
        self._is_full = True
        super().pause_reading()

    def resume_reading(self) -> None:
        """As uvicorn's, unless reading is held."""
        self._is_full = False
        if not self.is_held:
            super().resume_reading()
