"""A run that did not prove every cell fails and says so; the page is what a whole run says, and nothing else."""

import pytest

CLAUSES = """clauses = [
    { text = "It drains.", tests = ["test_ops_ready_unload"] },
    { text = "It frees.", tests = ["test_ops_ready_unload"] },
]"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pytest.skip('no GPU')", "skipped in its call"),
        ("pytest.xfail('some day')", "is expected to fail"),
        ("assert slots == 3", "failed in its call"),
    ],
    ids=["skipped", "expected to fail", "failed"],
)
@pytest.mark.parametrize("arguments", [("suite",), ("suite/test_tiny.py::test_rule_once",)], ids=["whole", "part"])
def test_a_cell_that_does_not_plainly_pass_fails_the_run(suite, body, said, arguments):
    suite.edit("test_tiny.py", "assert slots == 2", body)

    ran = suite.run(*arguments)

    assert ran.code == 1, ran.output
    assert f"rule.once: suite/test_tiny.py::test_rule_once[once] {said}" in ran.output


@pytest.mark.parametrize(
    "mark", ["pytest.mark.skip", "pytest.mark.xfail", "pytest.mark.xfail(run=False)"], ids=lambda it: it.split(".")[-1]
)
def test_a_marked_cell_fails_the_run(suite, mark):
    suite.edit("test_tiny.py", '@cell("rule.once"', f'@{mark}\n@cell("rule.once"')

    ran = suite.run()

    assert ran.code == 1, ran.output
    assert "rule.once: suite/test_tiny.py::test_rule_once[once] " in ran.output
    assert "2 of 3 cells held" in ran.output


def test_a_fault_in_one_variant_costs_the_whole_cell(suite):
    suite.edit("test_tiny.py", "assert slots in (1, 2, 4)", "assert (slots, isolation) != (4, 'process')")

    ran = suite.run()

    assert ran.code == 1
    assert "2 of 3 cells held" in ran.output


def test_a_broken_teardown_costs_the_cell(suite):
    suite.edit(
        "test_tiny.py",
        "import pytest\n",
        "import pytest\n\n@pytest.fixture\ndef broken():\n    yield\n    raise RuntimeError\n",
    )
    suite.edit("test_tiny.py", "def test_rule_once(slots)", "def test_rule_once(slots, broken)")

    ran = suite.run()

    assert ran.code == 1
    assert "rule.once: suite/test_tiny.py::test_rule_once[once] failed in its teardown" in ran.output


def test_a_stale_page_fails_the_run_and_shows_how_to_write_it(suite):
    suite.edit("cells.toml", "Unloaded.", "Unloaded, and it stays so.")

    ran = suite.run()

    assert ran.code == 1, ran.output
    assert "page.md is stale; write it with: pytest suite --write" in ran.output
    assert "+| `ops.ready.unload` | Unloaded, and it stays so." in ran.output


def test_a_missing_page_is_stale(suite):
    suite.page.unlink()

    assert suite.run().code == 1
    assert not suite.page.exists()


def test_a_part_of_the_suite_does_not_look_at_the_page(suite):
    suite.page.write_text("old")

    assert suite.run("suite", "-k", "rule").code == 0


@pytest.mark.parametrize(
    ("old", "new", "arguments"),
    [("assert slots == 2", "assert slots == 2", ("-k", "rule")), ("assert slots == 2", "assert slots == 3", ())],
    ids=["a part", "a failure"],
)
def test_only_a_whole_run_that_held_writes_the_page(suite, old, new, arguments):
    suite.page.write_text("old")
    suite.edit("test_tiny.py", old, new)

    ran = suite.run("suite", "--write-conformance", *arguments)

    assert ran.code == 1, ran.output
    assert "page.md is written only for the whole suite, and not if a cell fails" in ran.output
    assert suite.page.read_text() == "old"


def test_a_run_that_stops_early_proves_nothing(suite):
    suite.edit("test_tiny.py", "assert slots in (2, 4)", "assert slots == 3")
    suite.page.write_text("old")

    ran = suite.run("suite", "-x", "--write-conformance")

    assert ran.code == 1
    assert "1 of 3 cells held" in ran.output
    assert suite.page.read_text() == "old"


def test_a_run_from_above_compares_the_page_too(suite):
    (suite.root / "test_elsewhere.py").write_text("def test_elsewhere(): pass\n")
    assert suite.run(".").code == 0

    suite.page.write_text("old")

    assert suite.run(".").code == 1


def test_collecting_alone_judges_no_page(suite):
    suite.page.write_text("old")

    assert suite.run("suite", "--collect-only").code == 0


def test_collecting_alone_writes_the_page_that_a_whole_run_accepts(suite):
    written = suite.page.read_text()
    suite.page.unlink()

    ran = suite.run("suite", "--collect-only", "--write-conformance")

    assert ran.code == 0, ran.output
    assert "page.md is written" in ran.output
    assert ran.passed_count() == 0
    assert suite.page.read_text() == written


@pytest.mark.parametrize("arguments", [("suite", "-k", "rule"), ("suite/test_tiny.py",)], ids=["a word", "a file"])
def test_collecting_a_part_does_not_write_the_page(suite, arguments):
    suite.page.write_text("old")

    ran = suite.run(*arguments, "--collect-only", "--write-conformance")

    assert ran.code == 1, ran.output
    assert suite.page.read_text() == "old"


def test_the_page_lists_which_tests_assert_each_clause(suite):
    suite.edit("cells.toml", 'upstream = "P"', f'upstream = "P"\n{CLAUSES}')

    assert suite.run("suite", "--collect-only", "--write-conformance").code == 0

    assert suite.page.read_text().count("| cell | clause | asserted by |") == 1
    assert "| `ops.ready.unload` | It drains. | `test_ops_ready_unload` |" in suite.page.read_text()


def test_the_page_shows_each_cell_once_in_the_files_order(suite):
    rows = [line for line in suite.page.read_text().splitlines() if line.startswith("| `")]

    both = "process, thread"
    link = "[{0}](suite/test_tiny.py)".format
    assert rows == [
        f"| `ops.ready.unload` | Unloaded. | HTTP | {link('test_ops_ready_unload')} | 1, 2, 4 | {both} | D | P |  |",
        f"| `two.spare.request` | Needs two. | HTTP | {link('test_two_spare_request')} | 2, 4 | {both} | D |  |  |",
        f"| `rule.once` | Once \\| only. | command | {link('test_rule_once')} | once |  | D |  | It never fails. |",
        "| `time.later` | Later. |  |  | 1, 2, 4 |  | pending: step 3 |  |  |",
    ]
    assert "| **all** | 4 | 3 | 1 | 0 | 0 | 1 | 0 | 3 |" in suite.page.read_text()
