"""How much memory there is, behind a seam: a test says so itself."""

from typing import Protocol


class MemoryMeter(Protocol):
    """Reads the memory of this machine, or of the container that the server runs in."""

    def available_bytes(self) -> int:
        """What could be allocated now without swapping, in bytes."""
        ...

    async def resident_bytes(self) -> int | None:
        """What the server's process holds, its share of shared pages included, in bytes; None where nothing tells."""
        ...
