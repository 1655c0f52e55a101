"""The kind `unix`: the HTTP API on a socket file, for the user whom the server runs as."""

import asyncio
from collections.abc import Mapping

from antiphon.http.server import HttpServer
from antiphon.listeners.socket_file import SocketFile
from antiphon.ports.listener import Served
from antiphon.runtime.clock import LoopClock
from antiphon.vocabulary.errors import ConfigError


class UnixListener:
    """HTTP on the socket file at the option `path`; its limits and its stop are those of the default listener."""

    def __init__(self, options: Mapping[str, object]) -> None:
        match options:
            case {"path": str(path), **others} if not others:
                self._path = path
            case _:
                raise ConfigError("listeners: unix wants a path and no other option")

    def open(self) -> str:
        """Make the socket file."""
        self._file = SocketFile(self._path)
        return f"unix:{self._path}"

    async def serve(self, served: Served) -> None:
        """Serve until the stop; from then on the file is gone, and what was accepted goes on."""
        removing = asyncio.ensure_future(self._remove_once(served.stop.begun))
        try:
            await HttpServer(self._file.socket, served, LoopClock()).serve()
        finally:
            removing.cancel()
            self.close()

    def close(self) -> None:
        """Remove the socket file."""
        self._file.close()

    async def _remove_once(self, begun: asyncio.Event) -> None:
        await begun.wait()
        self._file.remove()
