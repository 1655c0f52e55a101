"""Each fault in what tests claim ends the run, and says which test and which cell it is."""

import pytest

USAGE_ERROR = 4


def test_a_suite_without_a_fault_passes_at_each_slot_count_and_isolation(suite):
    ran = suite.run()

    assert ran.code == 0, ran.output
    assert ran.passed_count() == 3 * 2 + 2 * 2 + 1
    assert "3 of 3 cells held, 1 pending" in ran.output


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('@cell("rule.once", "command")', '@cell("rule.twice", "command")', "'rule.twice', and there is no such cell"),
        (
            '@cell("rule.once", "command")',
            '@cell("time.later", "command")',
            "'time.later', which is pending until step 3",
        ),
        ('@cell("rule.once", "command")', "", "test_rule_once claims 0 cells"),
        ('@cell("rule.once", "command")', '@cell("rule.once", "browser")', "the level 'browser'"),
        ("def test_rule_once(", "def test_once(", "test_once must be called test_rule_once"),
        ("def test_rule_once(", "def test_rule_onceler(", "test_rule_onceler must be called test_rule_once"),
        ("def test_rule_once(", "def test_rule_once_more(", "none is called test_rule_once"),
        (
            "_unload(slots, isolation):\n    assert slots in (1, 2, 4)",
            "_unload(isolation):\n    pass",
            "has no `slots`",
        ),
        ("_unload(slots, isolation)", "_unload(slots)", "has no `isolation`"),
        (
            '@cell("rule.once", "command")\ndef test_rule_once(slots):\n    assert slots == 2',
            "",
            "'rule.once' is claimed by no test",
        ),
        ('@cell("rule.once", "command")', '@cell("rule.once")\n@cell("ops.ready.unload")', "claims 2 cells"),
    ],
    ids=[
        "unknown",
        "pending",
        "no claim",
        "level",
        "misnamed",
        "misnamed as a prefix",
        "no test of its name",
        "slots",
        "isolation",
        "unclaimed",
        "two claims",
    ],
)
def test_a_fault_ends_the_run_before_any_test(suite, old, new, said):
    suite.edit("test_tiny.py", old, new)

    ran = suite.run()

    assert ran.code == USAGE_ERROR, ran.output
    assert said in ran.output
    assert ran.passed_count() == 0


def test_a_cell_with_two_tests_of_its_name_is_claimed_twice(suite):
    suite.write(
        "test_other.py",
        """
        from conformance_plugin import cell

        @cell("rule.once", "command")
        def test_rule_once():
            pass
        """,
    )

    ran = suite.run()

    assert ran.code == USAGE_ERROR, ran.output
    assert "'rule.once' is claimed twice: by suite/test_other.py::test_rule_once" in ran.output


def test_a_further_test_of_a_cell_carries_its_name_and_more_words(suite):
    suite.write(
        "test_other.py",
        """
        from conformance_plugin import cell

        @cell("rule.once", "unit")
        def test_rule_once_and_for_all():
            pass
        """,
    )

    ran = suite.run("suite", "--write-conformance")

    assert ran.code == 0, ran.output
    assert "[test_rule_once](suite/test_tiny.py)<br>[test_rule_once_and_for_all](suite/test_other.py)" in (
        suite.page.read_text()
    )
    assert "| command, unit |" in suite.page.read_text()


@pytest.mark.parametrize(
    "arguments",
    [("suite/test_tiny.py::test_rule_once",), ("suite", "-k", "rule"), ("suite", "--deselect", "suite/test_other.py")],
    ids=["one test", "a word", "deselected"],
)
def test_a_part_of_the_suite_need_not_claim_every_cell(suite, arguments):
    suite.edit("cells.toml", '["rule.once"]', '["rule.new"]\nrequirement = "It has no test yet."\n\n["rule.once"]')
    suite.write(
        "test_other.py",
        """
        from conformance_plugin import cell

        @cell("ops.ready.unload")
        def test_ops_ready_unload_again(slots, isolation):
            pass
        """,
    )

    ran = suite.run(*arguments)

    assert ran.code == 0, ran.output
    assert suite.run().code == USAGE_ERROR


def test_one_file_need_not_claim_every_cell_even_if_it_is_the_only_one(suite):
    suite.edit("test_tiny.py", '@cell("rule.once", "command")\ndef test_rule_once(slots):\n    assert slots == 2', "")

    ran = suite.run("suite/test_tiny.py")

    assert ran.code == 0, ran.output
    assert suite.run("suite").code == USAGE_ERROR


def test_a_whole_suite_that_leaves_a_file_out_is_a_part(suite):
    suite.write("test_other.py", "")
    suite.page.write_text("old")

    assert suite.run("suite", "--ignore", "suite/test_other.py").code == 0
    assert suite.run("suite").code == 1


def test_without_a_test_module_nothing_need_be_claimed(empty_suite):
    (empty_suite.root / "test_elsewhere.py").write_text("def test_elsewhere(): pass\n")
    assert empty_suite.run("suite", "--write-conformance").code == 5

    ran = empty_suite.run(".")

    assert ran.code == 0, ran.output
    assert empty_suite.page.read_text().count("no test yet |") == 1 + 3


def test_an_import_error_is_not_buried_under_unclaimed_cells(suite):
    suite.edit("test_tiny.py", "import pytest\n", "import no_such_module\n")

    ran = suite.run()

    assert ran.code == 2, ran.output
    assert "claimed by no test" not in ran.output


CLAUSES = """clauses = [
    { text = "It drains.", tests = ["test_ops_ready_unload"] },
    { text = "It frees.", tests = ["test_ops_ready_unload", "test_ops_ready_unload_frees"] },
]"""


def test_a_clause_that_names_no_test_of_the_cell_ends_a_whole_run(suite):
    suite.edit("cells.toml", 'upstream = "P"', f'upstream = "P"\n{CLAUSES}')

    ran = suite.run()

    assert ran.code == USAGE_ERROR, ran.output
    assert "a clause of 'ops.ready.unload' names test_ops_ready_unload_frees, and no test" in ran.output
    assert suite.run("suite/test_tiny.py").code == 0  # the test may be in another file


def test_a_test_that_no_clause_of_its_cell_names_ends_the_run(suite):
    suite.edit("cells.toml", 'upstream = "P"', f'upstream = "P"\n{CLAUSES}')
    suite.write(
        "test_other.py",
        """
        from conformance_plugin import cell

        @cell("ops.ready.unload")
        def test_ops_ready_unload_frees(slots, isolation):
            pass

        @cell("ops.ready.unload")
        def test_ops_ready_unload_and_more(slots, isolation):
            pass
        """,
    )

    ran = suite.run("suite/test_other.py")

    assert ran.code == USAGE_ERROR, ran.output
    assert "test_ops_ready_unload_and_more is named by no clause of 'ops.ready.unload'" in ran.output


def test_clauses_that_name_all_tests_of_their_cell_are_right(suite):
    suite.edit("cells.toml", 'upstream = "P"', f'upstream = "P"\n{CLAUSES}')
    suite.write(
        "test_other.py",
        """
        from conformance_plugin import cell

        @cell("ops.ready.unload")
        def test_ops_ready_unload_frees(slots, isolation):
            pass
        """,
    )

    ran = suite.run("suite", "--write-conformance")

    assert ran.code == 0, ran.output
