"""The page of cases and the tests that cite them agree: no row without a test, no test of a row that is not there."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ID = re.compile(r"\b(?:AUD|LIV|API|TTS|QUE|MEM|DIS|CFG|SEC)-\d\d\b")


@cache
def cited():
    """The cases that tests cite; of a span, the first alone."""
    files = (file for file in (ROOT / "tests").rglob("test_*.py") if file != Path(__file__))
    return {case for file in files for case in ID.findall(file.read_text(encoding="utf-8"))}


def rows():
    page = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([A-Z]{3}-\d\d) \|", page, re.MULTILINE)


@pytest.mark.parametrize("case", rows())
def test_a_case_is_cited_by_a_test(case):
    assert case in cited()


def test_every_case_that_is_cited_has_one_row():
    assert sorted(rows()) == sorted(set(rows()) | cited())
