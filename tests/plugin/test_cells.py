"""The cells of the contract are all there, and what excuses one from a run is on a closed list."""

from collections import Counter
from pathlib import Path

import pytest

from conformance_cells import CellsFileError, read_cells

CELLS = read_cells(Path(__file__).parents[1] / "conformance" / "cells.toml")


def _ids(prefix: str, *suffixes: str) -> set[str]:
    return {f"{prefix}.{suffix}" for suffix in suffixes}


def test_the_contract_has_a_hundred_and_forty_cells():
    assert Counter(cell.group for cell in CELLS.values()) == {
        "state": 6,
        "phase": 4,
        "ops": 42,
        "two": 40,
        "order": 8,
        "fail": 10,
        "time": 10,
        "rule": 20,
    }


def test_the_matrices_have_every_row_and_column():
    states = ("unloaded", "loading", "ready", "reconfiguring", "unloading", "shutting_down")
    operations = ("inference", "register", "unload", "bulk_unload", "evict", "status", "shutdown")
    situations = ("unloaded_ready", "loading_ready", "spare_ready", "full_ready", "reconfiguring_running")
    situations += ("unloading_ready", "both_busy", "other_bulk")
    commands = ("request_a", "request_b", "reconfigure_a", "unload_a", "unload_ab")

    matrix = {f"ops.{state}.{operation}" for state in states for operation in operations}
    matrix |= {f"two.{situation}.{command}" for situation in situations for command in commands}

    assert matrix == {cell.id for cell in CELLS.values() if cell.group in ("ops", "two")}


def test_only_the_cells_that_need_two_slots_leave_out_one():
    assert {cell.id for cell in CELLS.values() if cell.slots == (2, 4)} == {
        *_ids("two.spare_ready", "request_a", "request_b", "reconfigure_a", "unload_a", "unload_ab"),
        "fail.capacity_probe",
        "time.healthy_and_overdue",
    }


def test_only_the_cells_without_slots_run_once():
    assert {cell.id for cell in CELLS.values() if cell.slots == ()} == {
        *_ids("rule", "default_runtime", "default_rejects_slots", "slot_range", "empty_admission_lists"),
        *_ids("rule", "startup_notice", "management_forbidden", "unknown_target", "capacity_one_parity"),
        "rule.cli_unchanged",
        "fail.models_root",
        "time.custom_listener",
    }


def test_no_cell_is_pending():
    assert [cell.id for cell in CELLS.values() if cell.pending] == []
    assert [cell.id for cell in CELLS.values() if cell.partly_pending] == []


def test_every_cell_says_what_it_requires():
    assert [cell.id for cell in CELLS.values() if not cell.requirement.endswith(".")] == []
    assert [cell.id for cell in CELLS.values() if cell.exceeds and not cell.exceeds.endswith(".")] == []


def test_every_clause_is_listed_once_and_without_a_full_stop():
    for cell in CELLS.values():
        texts = [clause.text for clause in cell.clauses]
        assert [text for text in texts if text.endswith(".")] == []
        assert len(set(texts)) == len(texts), cell.id


def test_upstreams_labels_are_theirs():
    assert Counter(cell.upstream[:1] for cell in CELLS.values()) == {"D": 46, "P": 53, "U": 11, "": 30}


def test_no_tests_name_fits_two_cells():
    for cell in CELLS.values():
        assert [other.id for other in CELLS.values() if other.may_be_tested_by(cell.test_name)] == [cell.id]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("slots = [3]", "slots"),
        ('upstream = "X"', "upstream"),
        ('pnding = "x"', "pnding"),
        ('clauses = [{ text = "It holds.", tests = ["test_rule_once"] }]', "a single clause"),
        ('clauses = [{ text = "It holds.", tests = [] }]', "a text and tests"),
        ('clauses = [{ text = "It holds.", test = ["test_rule_once"] }]', "a text and tests"),
        (
            'clauses = [{ text = "A.", tests = ["test_rule_once"] }, { text = "B.", tests = ["test_rule_two"] }]',
            "test_rule_two cannot test this cell",
        ),
    ],
    ids=["slots", "label", "field", "one clause", "no test", "clause field", "another cell's test"],
)
def test_a_wrong_row_is_refused(tmp_path, line, said):
    file = tmp_path / "cells.toml"
    file.write_text(f'["rule.once"]\nrequirement = "It holds."\n{line}\n')

    with pytest.raises(CellsFileError, match=f"rule.once.*{said}"):
        read_cells(file)
