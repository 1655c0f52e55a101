"""A real Chromium for the tests of the page. It knows where Debian has it, and nothing of what it is shown.

Never wait with `wait_for_function`: the policy of the page forbids it to look a second time."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

from server_process import HANG_GUARD_S

EXPECTED_NOISE = ("Failed to load resource: ",)
"""What the browser says by itself of answers that are no 200; the page's own handling of them is what is tested."""


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Run Chromium without a window until the block ends. Raises AssertionError where there is none."""
    program = shutil.which("chromium")
    assert program, "chromium is missing: apt-get install chromium"
    # As root there is no sandbox; in a container /dev/shm is small.
    always = ("--no-sandbox", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required")
    expect.set_options(timeout=1000 * HANG_GUARD_S)  # what is expected takes as long as the machine is busy
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*always, *flags])
        yield browser
        browser.close()


@contextmanager
def visit(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """Open a page in a profile of its own; when the block ends nothing may have gone wrong in it unseen.

    `options` are those of a Playwright context. Raises AssertionError for an exception that nobody caught, and for what
    the page or the browser wrote as an error to the console.
    """
    context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
    context.set_default_timeout(1000 * HANG_GUARD_S)
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda message: faults.extend(_fault(message)))
    page.on("pageerror", lambda error: faults.append(_told(error)))
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    assert faults == []


def _fault(message: ConsoleMessage) -> Sequence[str]:
    is_fault = message.type in ("error", "warning") and not message.text.startswith(EXPECTED_NOISE)
    return [f"{message.type}: {message.text} ({message.location})"] if is_fault else []


def _told(error: Error) -> str:
    return f"{error.message}\n{error.stack}"
