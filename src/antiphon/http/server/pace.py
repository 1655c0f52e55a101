"""How fast a body arrives: one that drips would otherwise hold its memory and its temporary file for days."""


class Pace:
    """Judges a body window by window. Units: `min_bytes_per_s` over each `window_s`; either of them 0 is no limit.

    The average of the whole would not do: a peer that sends much at first could then drip for as long as it likes.
    """

    def __init__(self, min_bytes_per_s: int, window_s: float) -> None:
        self._min_bytes = min_bytes_per_s * window_s
        self._window_s = window_s
        self._began_at = 0.0
        self._bytes = 0

    def restart(self, now: float) -> None:
        """Begin a window, since the peer has been waited for only from now on."""
        self._began_at = now
        self._bytes = 0

    def count(self, size_bytes: int) -> None:
        """Note that so much has arrived."""
        self._bytes += size_bytes

    def is_too_slow(self, now: float) -> bool:
        """Whether a window has ended in which too little arrived; if enough did, the next one begins."""
        if not self._min_bytes or now - self._began_at < self._window_s:
            return False
        if self._bytes < self._min_bytes:
            return True
        self.restart(now)
        return False
