"""A real Chromium for the tests of the page. It knows where Debian has it, and nothing of what it is shown.

Read pages with `expect` or with `page_waits`."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

PAGE_GUARD_S = 120.0
"""No step of a page takes this long unless it hangs.

To open a view with a hundred waiting requests takes half of it where the browser, the server and the tests share one
busy core. Units: seconds.
"""

EXPECTED_NOISE = ("Failed to load resource: ",)
"""What the browser says by itself of answers that are no 200; the page's own handling of them is what is tested."""

AHEAD_S = 20
"""How far the clock of a page jumps when it is stopped, because it cannot go back.

It must stay below the 25 s after which the page takes a server for silent (its limit less the time between two
heartbeats). Units: seconds.
"""


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Run Chromium without a window until the block ends. Raises AssertionError where there is none."""
    program = shutil.which("chromium")
    assert program, "chromium is missing: apt-get install chromium"
    # As root there is no sandbox; in a container /dev/shm is small.
    always = ("--no-sandbox", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required")
    expect.set_options(timeout=1000 * PAGE_GUARD_S)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*always, *flags])
        yield browser
        browser.close()


@contextmanager
def visit(
    browser: Browser, url: str, *, noise: Sequence[str] = (), has_clock: bool = False, **options: object
) -> Iterator[Page]:
    """Open a page in a profile of its own; when the block ends nothing may have gone wrong in it unseen.

    `options` are those of a Playwright context; `has_clock` is for `stopped_timers`. Raises AssertionError for uncaught
    exceptions, and for errors and warnings in the console unless they start with one of `noise`.
    """
    context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PAGE_GUARD_S)
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda message: faults.extend(_fault(message, (*EXPECTED_NOISE, *noise))))
    page.on("pageerror", lambda error: faults.append(_told(error)))
    if has_clock:
        page.clock.install()
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    assert faults == []


@contextmanager
def stopped_timers(page: Page) -> Iterator[None]:
    """Stop the timers of a page inside the block, so that what the page shows only for a moment stays.

    Animation frames stop, too. Responses of the server and user input are handled as usual. The page must have been
    opened with `has_clock`.
    """
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + AHEAD_S)
    yield
    page.clock.resume()


def _fault(message: ConsoleMessage, noise: tuple[str, ...]) -> Sequence[str]:
    is_fault = message.type in ("error", "warning") and not message.text.startswith(noise)
    return [f"{message.type}: {message.text} ({message.location})"] if is_fault else []


def _told(error: Error) -> str:
    return f"{error.message}\n{error.stack}"
