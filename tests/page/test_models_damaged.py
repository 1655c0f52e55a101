"""A model that is installed and damaged: the page says that it is not served, and why."""

from playwright.sync_api import expect

from accessibility import grave_faults
from antiphon.packages.manifest import MANIFEST_NAME
from damaged_packages_stage import DEEP, package, served
from page_models import models_view


def test_a_damaged_package_is_shown_with_its_fault(browser, tmp_path):
    for name in ("good", "spoilt"):
        package(tmp_path, name)
    (tmp_path / "spoilt" / MANIFEST_NAME).write_text(DEEP)
    with served(tmp_path) as (url, _), models_view(browser, url) as view:
        faults = view.page.get_by_role("list", name="Models that are not served").get_by_role("listitem")
        expect(faults).to_have_count(1)
        expect(faults).to_have_text(
            f"spoilt is not served: spoilt: {MANIFEST_NAME} is damaged: it is nested too deeply"
        )
        assert grave_faults(view.page) == []


def test_where_all_is_served_nothing_is_said_of_it(browser, tmp_path):
    package(tmp_path, "good")
    with served(tmp_path) as (url, _), models_view(browser, url) as view:
        expect(view.page.get_by_text("1 model ", exact=False).first).to_be_visible()
        expect(view.page.get_by_label("Models that are not served")).to_be_hidden()
