"""The listener: where it listens, whom it lets in, and how it stops. What is said on a connection only `talk` knows.

The library `wyoming` is imported when a listener is made, so that a server without one does not need it.
"""

import asyncio
import warnings
from collections.abc import Mapping
from contextlib import closing

from antiphon.http.access import local_names
from antiphon.http.server import address_of, listen, resolve
from antiphon.listeners.socket_file import SocketFile
from antiphon.listeners.wyoming.options import address_in, read_options
from antiphon.ports.listener import HouseRules, Served
from antiphon.runtime.clock import LoopClock
from antiphon.vocabulary.errors import ConfigError

_RULES = HouseRules()


class WyomingListener:
    """Wyoming on a TCP port or a socket file. The protocol knows no keys: see `heed`."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = read_options(options)
        self._address = address_in(self._options.uri)
        self._rules = _RULES
        self._file: SocketFile | None = None
        _import_library()

    def heed(self, rules: HouseRules) -> None:
        """Learn who may come.

        Beyond this machine it opens only on a server that says `insecure`. Where the server has keys it must be given
        one, with which it calls for whomever its address lets in.
        """
        key = self._options.api_key
        if rules.api_keys and key not in rules.api_keys:
            raise ConfigError(
                "listeners: wyoming: the server has API keys, and no Wyoming client can send one;"
                " give the listener one of them as api_key, if all who reach it may do without"
            )
        self._rules = rules

    def open(self) -> str:
        """Take the address."""
        if isinstance(self._address, str):
            self._file = SocketFile(self._address)
            self._socket = self._file.socket
            return f"wyoming at unix://{self._address}"
        address = resolve(self._address.host, self._address.port)
        if local_names(self._address.host, address.host) is None and not self._rules.insecure:
            raise ConfigError(
                f"listeners: wyoming: {self._address.host} can be reached from other machines, and the protocol asks"
                " nobody for a key; listen on 127.0.0.1, or say --insecure"
            )
        self._socket = listen(address)
        return f"wyoming at {address_of(self._socket).replace('http://', 'tcp://', 1)}"

    async def serve(self, served: Served) -> None:
        """Serve until the stop. From then on nobody is accepted; what was begun goes on, until the cut."""
        from antiphon.listeners.wyoming.service import Service

        service = Service(served, self._options, LoopClock())
        try:
            server = await asyncio.get_running_loop().create_server(service.accept, sock=self._socket)
            with closing(server), service.looking():
                await served.stop.begun.wait()
                server.close()
                self._remove_file()
                await service.drain()
        finally:
            await service.end()
            self.close()

    def close(self) -> None:
        """Give the address back."""
        self._remove_file()
        self._socket.close()

    def _remove_file(self) -> None:
        if self._file is not None:
            self._file.remove()


def _import_library() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it imports audioop, which leaves with Python 3.13
            import wyoming.audio  # noqa: F401
    except ImportError as error:
        raise ConfigError("listeners: wyoming needs its library: pip install 'antiphon[wyoming]'") from error
