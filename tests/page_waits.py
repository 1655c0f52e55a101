"""Bounded waits for browser tests that need to read a page.

An action returns before the page has changed: the change follows in a later task, on the next frame, or once the server
has answered. Playwright's `expect` waits for it. What `expect` cannot express is read with the functions here, which
report the last value they saw if the wanted one does not appear. `tests/purity/test_page_reads.py` reports tests that
read a page in any other way.
"""

from collections.abc import Callable
from typing import TypeVar

from playwright.sync_api import Locator, Page, expect

from browser import PAGE_GUARD_S
from conformance_client import eventually

T = TypeVar("T")
MOST_PRESSES = 200
"""More than any view has tab stops."""


def read_until(target: Page | Locator, script: str, is_wanted: Callable[[T], bool], what: str, arg: object = None) -> T:
    """Run a script without side effects until `is_wanted` accepts its result, and return that result.

    On a locator, the script is a function whose first argument is the element. Raises AssertionError, which names
    `what` and the last result, after the time limit.
    """
    return eventually(lambda: target.evaluate(script, arg), is_wanted, what, PAGE_GUARD_S)


def compute(target: Page | Locator, script: str, arg: object = None) -> object:
    """Run a script once and return its result.

    Use it only if the result does not depend on when the script runs: the script calls a function of the page itself,
    or reads what the test has written.
    """
    return target.evaluate(script, arg)


def read_text(locator: Locator) -> str:
    """Wait until an element has text, and return it. The text must be written in one step and stay the same."""
    expect(locator).not_to_be_empty()
    text = locator.text_content()
    assert text is not None
    return text


def read_texts(locator: Locator, count: int | None = None) -> list[str]:
    """Wait until there are `count` elements (by default at least one) and all have text, and return the texts."""
    return eventually(
        locator.all_text_contents,
        lambda texts: all(texts) and (len(texts) == count if count is not None else len(texts) > 0),
        f"text in {locator}",
        PAGE_GUARD_S,
    )


def read_attributes(locator: Locator, name: str) -> list[str]:
    """Wait until there is at least one element and all have the attribute, and return its values."""
    return eventually(
        lambda: locator.evaluate_all("(all, name) => all.map(it => it.getAttribute(name))", name),
        lambda values: len(values) > 0 and None not in values,
        f"{name} of {locator}",
        PAGE_GUARD_S,
    )


def wait_until_live(page: Page) -> None:
    """Wait until the page has read the models, the status and its permissions, and follows the journal.

    Before that, selects may be refilled, and the controls for managing models may still be added.
    """
    expect(page.locator(".connection")).to_have_attribute("data-connection", "live")


def press_until_focused(locator: Locator, key: str) -> None:
    """Press a key until an element has the focus. Raises AssertionError if it never gets it."""
    for _ in range(MOST_PRESSES):
        if locator.evaluate("it => it === document.activeElement"):
            return
        locator.page.keyboard.press(key)
    raise AssertionError(f"{locator} does not have the focus after pressing {key} {MOST_PRESSES} times")
