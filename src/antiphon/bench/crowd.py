"""Several threads that work off one list: how callers press on a server and on a bare engine alike."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def work_off(todo: Iterable[T], callers: Sequence[Callable[[T], object]]) -> float:
    """Call each of `callers` in a thread of its own with the next piece until none is left.

    Returns the wall-clock seconds from the first call to the last answer. Raises the first fault of a caller, once all
    threads have ended; a fault ends the others after the piece at hand.
    """
    left = deque(todo)
    faults: list[BaseException] = []
    together = threading.Barrier(len(callers) + 1)

    def work(call: Callable[[T], object]) -> None:
        together.wait()
        while not faults:
            try:
                piece = left.popleft()
            except IndexError:
                return
            try:
                call(piece)
            except BaseException as fault:  # noqa: BLE001 (raised again by the one who waits)
                faults.append(fault)

    threads = [threading.Thread(target=work, args=(call,), daemon=True) for call in callers]
    for thread in threads:
        thread.start()
    together.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - started
    if faults:
        raise faults[0]
    return elapsed_s
