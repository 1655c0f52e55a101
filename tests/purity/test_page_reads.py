"""Browser tests read pages only with `expect` or `page_waits`.

A read that does not wait passes on the machine where it was written and fails on a slower one.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HELPERS = {"browser.py", "page_waits.py", "accessibility.py"}
"""They implement the waits."""

MODULES = {"browser", "page_models", "page_waits", "playwright"}
READS = {"inner_text", "all_inner_texts", "inner_html", "text_content", "all_text_contents", "content", "input_value"}
READS |= {"get_attribute", "is_visible", "is_hidden", "is_enabled", "is_disabled", "is_checked", "is_editable"}
READS |= {"count", "all", "bounding_box", "aria_snapshot", "query_selector", "query_selector_all"}
READS |= {"element_handle", "element_handles", "evaluate_all", "evaluate_handle", "eval_on_selector"}
READS |= {"eval_on_selector_all"}
PAUSES = {
    "wait_for_timeout",  # a sleep
    "wait_for_function",  # the page's content security policy forbids the eval that it polls with
    "wait_for_load_state",  # the page follows the journal, so the network is never idle
    "wait_for_selector",
    "sleep",
}


def find_hurried(source):
    """Find reads that do not wait, sleeps, and assertions with their own time limit."""
    tree = ast.parse(source)
    if not is_of_a_browser(tree):
        return
    ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        is_read = name in READS or (name == "evaluate" and id(node) not in ignored)
        has_bound = any(it.arg == "timeout" for it in node.keywords) and name.startswith(("to_", "not_to_"))
        if is_read or has_bound or name in PAUSES:
            yield f"line {node.lineno}: {name}"


def is_of_a_browser(tree):
    imported = {it.module or "" for it in ast.walk(tree) if isinstance(it, ast.ImportFrom)}
    imported |= {name.name for it in ast.walk(tree) if isinstance(it, ast.Import) for name in it.names}
    return any(name.partition(".")[0] in MODULES for name in imported)


def test_every_read_of_a_page_waits():
    files = [it for it in TESTS.rglob("*.py") if it.name not in HELPERS]
    found = {str(it.relative_to(TESTS)): list(find_hurried(it.read_text())) for it in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_browser_tests_are_among_those_that_are_read():
    of_a_browser = {it.name for it in TESTS.rglob("*.py") if is_of_a_browser(ast.parse(it.read_text()))}
    assert {it.name for it in (TESTS / "page").glob("test_*.py")} <= of_a_browser


@pytest.mark.parametrize(
    "line",
    [
        "code = page.locator('pre').inner_text()",
        "assert rows(page).count() == 3",
        "assert page.evaluate('document.title') == 'x'",
        "while page.evaluate('document.activeElement.id') != 'x': pass",
        "if not dialog.is_visible(): button.click()",
        "page.wait_for_timeout(100)",
        "expect(row).to_be_visible(timeout=1000)",
    ],
)
def test_one_that_does_not_is_found(line):
    assert len(list(find_hurried(f"from browser import visit\n{line}"))) == 1
    assert list(find_hurried(line)) == []


@pytest.mark.parametrize(
    "line", ["expect(row).to_have_text('x')", "page.evaluate('window.seen = []')", "read_until(page, 'x', bool, 'x')"]
)
def test_one_that_does_is_not_found(line):
    assert list(find_hurried(f"from browser import visit\n{line}")) == []
