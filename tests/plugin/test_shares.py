"""How the suite is cut where several processes share it."""

from shared_suite import share_of

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
