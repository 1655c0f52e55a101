"""How the suite is cut where several processes share it."""

from pathlib import Path

import shared_suite
from shared_suite import place_of, share_of

CONFORMANCE = "tests/conformance/test_order.py"


def test_a_file_stays_together():
    assert share_of("tests/sweep/test_sweep.py::test_a[leaves-load]") == share_of("tests/sweep/test_sweep.py::test_b")
    assert share_of("tests/sweep/test_sweep.py::test_a") != share_of("tests/core/test_gate.py::test_a")


def test_a_conformance_file_is_cut_by_isolation_and_slots():
    share = share_of(f"{CONFORMANCE}::test_a[process-2slots]")

    assert share == share_of(f"{CONFORMANCE}::test_b[process-2slots]")
    assert share != share_of(f"{CONFORMANCE}::test_a[process-4slots]")
    assert share != share_of(f"{CONFORMANCE}::test_a[thread-2slots]")
    assert share != share_of("tests/conformance/test_phase.py::test_a[process-2slots]")


def test_what_takes_long_is_known_by_its_file():
    shares = ["isolation/test_memory.py::test_a", "conformance/test_rules_parity.py::test_a[process-once]"]
    longest, long, short = (place_of(share_of(f"tests/{it}")) for it in (*shares, "core/test_gate.py::test_a"))

    assert longest < long < short == place_of(share_of("tests/core/test_policy.py::test_a"))


def test_every_file_that_takes_long_exists():
    tests = Path(shared_suite.__file__).parent

    assert [file for file in shared_suite._LONG if not (tests / file.lstrip("/")).is_file()] == []
