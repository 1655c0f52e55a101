"""Threads that work off one list."""

import pytest

from antiphon.bench.crowd import work_off


def test_every_piece_is_worked_off_once() -> None:
    done: list[int] = []
    elapsed_s = work_off(range(100), [done.append, done.append])
    assert sorted(done) == list(range(100))
    assert elapsed_s > 0


def test_the_fault_of_a_caller_is_raised_and_ends_the_others() -> None:
    done: list[int] = []

    def fail_at_three(piece: int) -> None:
        if piece == 3:
            raise LookupError("three")
        done.append(piece)

    with pytest.raises(LookupError, match="three"):
        work_off(range(100), [fail_at_three])
    assert done == [0, 1, 2]
