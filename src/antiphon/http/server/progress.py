"""Whether a peer takes what it is sent, as the kernel can tell. It knows bytes, and no HTTP.

What has left our buffer says too little: the kernel takes large pieces at a time, so a peer that reads slowly seems to
stand still for seconds. Linux counts the bytes that the peer's side has acknowledged (TCP_INFO). Elsewhere, and on Unix
sockets, any change of our buffer counts as progress.
"""

import asyncio
import socket
import struct

_TCP_INFO_BYTES = 128
_ACKED_AT = 120
"""tcpi_bytes_acked in Linux's struct tcp_info (include/uapi/linux/tcp.h), a u64; tcpi_state is its first byte."""

_CLOSED_BY_PEER = (7, 8)
"""TCP_CLOSE and TCP_CLOSE_WAIT (include/net/tcp_states.h)."""


class Progress:
    """The writes of one transport. Units: monotonic seconds."""

    def __init__(self, transport: asyncio.Transport, now: float) -> None:
        self._transport = transport
        self._mark = 0
        self._since = now

    def restart(self, now: float) -> None:
        """Let the peer have made progress until now."""
        self._since = now

    def stands_since(self, now: float, *, is_closing: bool = False) -> float:
        """Since when the peer has taken nothing of what waits to be sent; `now` where nothing waits or it takes some.

        A transport that is closing waits for its peer even when its buffer is empty: over TLS, for the peer's own
        goodbye, which many never send. The result is as fine as the calls are frequent.
        """
        waiting = self._transport.get_write_buffer_size()
        if not waiting and not is_closing:
            self._since = now
            return now
        info = self._tcp_info()
        mark = struct.unpack_from("Q", info, _ACKED_AT)[0] if info else -waiting
        if mark != self._mark:
            self._mark, self._since = mark, now
        return self._since

    def peer_has_closed(self) -> bool:
        """Whether the peer has closed the connection, which a transport that reads nothing does not notice."""
        info = self._tcp_info()
        return info is not None and info[0] in _CLOSED_BY_PEER

    def _tcp_info(self) -> bytes | None:
        endpoint = self._transport.get_extra_info("socket")
        try:
            info: bytes = endpoint.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        except (OSError, AttributeError):  # a Unix socket, another system, a socket that is gone
            return None
        return info if len(info) == _TCP_INFO_BYTES else None
