"""Processes that are measured from outside."""

import pytest

from antiphon.bench.errors import BenchError
from antiphon.bench.processes import Measured, wait_for_url

BURN = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint('burnt', flush=True)\nsys.stdin.read()"


def test_the_processor_time_of_a_child_is_read_from_outside() -> None:
    with Measured(["-c", BURN]) as child:
        child.wait_for(lambda line: line == "burnt")
        assert child.cpu_s() >= 0.2


def test_a_server_is_found_by_the_line_that_announces_it() -> None:
    program = "import sys; print('x is listening on http://127.0.0.1:9', file=sys.stderr, flush=True); sys.stdin.read()"
    with Measured(["-c", program]) as child:
        assert wait_for_url(child) == "http://127.0.0.1:9"


def test_a_child_that_ends_early_is_reported_with_its_last_words() -> None:
    with (
        Measured(["-c", "raise SystemExit('no such model')"]) as child,
        pytest.raises(BenchError, match="no such model"),
    ):
        wait_for_url(child)


def test_a_child_hears_what_it_is_told() -> None:
    with Measured(["-c", "print(input()[::-1], flush=True); input()"]) as child:
        child.tell("abc")
        assert child.wait_for(lambda _: True) == "cba"
