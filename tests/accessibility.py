"""What axe finds in a page. It decides what is a fault of accessibility that we do not ship, and opens no page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

GRAVE = ("serious", "critical")


def grave_faults(page: Page) -> list[str]:
    """The serious faults that axe sees as the page stands: the rule, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:200]} ({node.get('failureSummary', '')})"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]
