"""Two workers share the tests, and the run says what it would say with one process: one verdict, one page."""

import pytest

USAGE_ERROR = 4


def test_two_workers_prove_what_one_process_does(suite):
    ran = suite.run_shared("suite")

    assert ran.code == 0, ran.output
    assert ran.passed_count() == 3 * 2 + 2 * 2 + 1
    assert ran.output.count("3 of 3 cells held, 1 pending") == 1


def test_two_workers_write_the_page_that_one_process_writes(suite):
    written = suite.page.read_text()
    suite.page.unlink()

    ran = suite.run_shared("suite", "--write-conformance")

    assert ran.code == 0, ran.output
    assert suite.page.read_text() == written


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pytest.skip('no GPU')", "skipped in its call"),
        ("assert slots == 3", "failed in its call"),
    ],
    ids=["skipped", "failed"],
)
def test_a_cell_that_does_not_hold_on_one_worker_fails_the_run(suite, body, said):
    suite.edit("test_tiny.py", "assert slots == 2", body)
    suite.page.write_text("old")

    ran = suite.run_shared("suite", "--write-conformance")

    assert ran.code == 1, ran.output
    assert ran.output.count(f"rule.once: suite/test_tiny.py::test_rule_once[once] {said}") == 1
    assert "2 of 3 cells held" in ran.output
    assert "page.md is written only for the whole suite, and not if a cell fails" in ran.output
    assert suite.page.read_text() == "old"


def test_a_worker_that_dies_costs_the_cell(suite):
    suite.edit("test_tiny.py", "assert slots == 2", "__import__('os')._exit(1)")

    ran = suite.run_shared("suite", "--max-worker-restart=0")

    assert ran.code == 1, ran.output
    assert "2 of 3 cells held" in ran.output


def test_a_missing_cell_ends_the_run_before_any_test(suite):
    suite.edit("test_tiny.py", '@cell("rule.once", "command")\ndef test_rule_once(slots):\n    assert slots == 2', "")

    ran = suite.run_shared("suite")

    assert ran.code == USAGE_ERROR, ran.output
    assert ran.output.count("'rule.once' is claimed by no test") == 1
    assert ran.passed_count() == 0


def test_a_misnamed_test_ends_the_run_before_any_test(suite):
    suite.edit("test_tiny.py", "def test_rule_once(", "def test_once(")

    ran = suite.run_shared(".")

    assert ran.code == USAGE_ERROR, ran.output
    assert ran.output.count("test_once must be called test_rule_once") == 1
    assert ran.passed_count() == 0


def test_a_stale_page_fails_the_run_from_above(suite):
    suite.page.write_text("old")

    ran = suite.run_shared(".")

    assert ran.code == 1, ran.output
    assert ran.output.count("page.md is stale; write it with: pytest suite --write") == 1
    assert suite.page.read_text() == "old"


def test_a_part_of_the_suite_does_not_look_at_the_page(suite):
    suite.page.write_text("old")

    ran = suite.run_shared("suite", "-k", "rule or two")

    assert ran.code == 0, ran.output
    assert "2 of 3 cells held" in ran.output


def test_an_import_error_fails_the_run_and_is_not_buried(suite):
    suite.edit("test_tiny.py", "import pytest\n", "import no_such_module\n")

    ran = suite.run_shared("suite")

    assert ran.code in (1, 2), ran.output
    assert "no_such_module" in ran.output
    assert "claimed by no test" not in ran.output
