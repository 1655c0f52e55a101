"""Tells whoever supervises this process, as systemd does, how it stands; it decides nothing, and may have no listener.

Source: sd_notify(3) and sd_watchdog_enabled(3).
"""

import logging
import os
import socket
from collections.abc import MutableMapping

from antiphon.ports.clock import Clock, Timer

log = logging.getLogger(__name__)

_ADDRESS, _WATCHDOG, _WATCHED = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Supervisor:
    """The supervisor that an environment names, if any. To be made before any worker starts, and used on the loop.

    It takes the names out of the environment: no worker is to speak for the server.
    """

    def __init__(self, environment: MutableMapping[str, str], clock: Clock) -> None:
        self._address = environment.pop(_ADDRESS, "")
        period_us, watched = environment.pop(_WATCHDOG, ""), environment.pop(_WATCHED, "")
        is_watched = period_us.isdecimal() and watched in ("", str(os.getpid()))
        self._sign_s = int(period_us) / 2_000_000 if is_watched else 0.0  # twice as often as is asked for
        self._clock = clock
        self._next_sign: Timer | None = None

    def ready(self, status: str) -> None:
        """Requests are answered from now on; `status` is one line for people.

        From here on it gives signs of life, where they are asked for. They come from the loop that answers the
        requests, so they end when that stands still, and not when one model does.
        """
        self._tell(f"READY=1\nSTATUS={status}")
        self._sign()

    def stopping(self) -> None:
        """The end has begun."""
        self._tell("STOPPING=1\nSTATUS=ending what was accepted")

    def close(self) -> None:
        """Give no more signs of life."""
        if self._next_sign is not None:
            self._next_sign.cancel()

    def _sign(self) -> None:
        if self._sign_s:
            self._tell("WATCHDOG=1")
            self._next_sign = self._clock.call_at(self._clock.now() + self._sign_s, self._sign)

    def _tell(self, notice: str) -> None:
        """Send it, or drop it: a supervisor that does not listen holds nobody up."""
        if not self._address:
            return
        address = self._address if self._address[0] != "@" else f"\0{self._address[1:]}"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notices:
                notices.setblocking(False)
                notices.sendto(notice.encode(), address)
        except OSError as error:
            log.warning("the supervisor cannot be told %s: %s", notice.partition("\n")[0], error)
