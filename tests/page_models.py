"""The view "Models" as a test drives it: its cards, its dialog, what it was asked for. It asserts nothing by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Locator, Page

from browser import visit
from conformance_server import Model


@contextmanager
def models_view(browser: Browser, url: str, **options: object) -> Iterator["ModelsView"]:
    """Open the view; `options` are those of `visit`."""
    with visit(browser, f"{url}/#/models", **options) as page:
        yield ModelsView(page)


class ModelsView:
    """The view on one page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def dialog(self) -> Locator:
        """The dialog that shows what would be done."""
        return self.page.get_by_role("dialog")

    @property
    def operations(self) -> Locator:
        """What was asked for."""
        return self.page.get_by_role("list", name="What you asked for").get_by_role("listitem")

    def card(self, model: Model | str) -> Locator:
        """One model."""
        return self.page.locator(f'[data-model="{model if isinstance(model, str) else model.id}"]')

    def slots(self, model: Model) -> Locator:
        """The cells of a model."""
        return self.card(model).locator(".slot")

    def waiters(self, model: Model) -> Locator:
        """Who waits for a model, in order."""
        return self.card(model).locator(".waiter")

    def button(self, name: str) -> Locator:
        """A button of the page, by its whole name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def confirm(self, verb: str) -> None:
        """Do what the dialog shows."""
        self.dialog.get_by_role("button", name=verb, exact=True).click()
