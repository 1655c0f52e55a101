"""The pages agree with what they point at: files, headings, and the routes of the application."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import WebSocketRoute

from antiphon.bootstrap import assemble
from antiphon.config import ServerConfig, build_config
from antiphon.runtime.discovery import AdapterFinder

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(_prose(page))}


def _faults(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.is_relative_to(ROOT) or not found.exists():
            yield f"{target}: there is no such file"
        elif anchor and anchor not in _anchors(found):
            yield f"{target}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert list(_faults(page)) == []


def test_the_api_page_has_a_heading_for_every_route() -> None:
    config = build_config({}, source="this test", base=ROOT, parallel_jobs=True)
    assembly = assemble(config, AdapterFinder(), parallel_jobs=True)
    app = assembly.app()
    paths: dict[str, dict[str, object]] = app.openapi()["paths"]
    assembly.codec.close()
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    routes |= {f"WS {route.path}" for route in app.routes if isinstance(route, WebSocketRoute)}  # OpenAPI has none
    headings = set(_HEADING.findall(_prose(ROOT / "docs" / "api.md")))
    assert {heading for heading in headings if re.match(r"[A-Z]+ /", heading)} == routes


@pytest.mark.parametrize("page", ["limits.md", "security.md"])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", (ROOT / "docs" / page).read_text()))
    existing = {
        name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert named
    assert named <= existing


def test_every_limit_of_the_configuration_is_in_the_table() -> None:
    table = (ROOT / "docs" / "limits.md").read_text()
    fields = [
        name for name in ServerConfig.model_fields if re.match(r"max_|min_.*_per_s$|.*_timeout_ms$|keep_alive", name)
    ]
    assert [name for name in fields if f"`{name}`" not in table] == []
