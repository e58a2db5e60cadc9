"""Every page, looked at: wide, narrow, dark, empty and failed, into var/screenshots/.

The pictures are for people (docs/ui-review.md); the test itself checks that nothing overflows the
screen, that every page has its heading, and that consoles stay clean.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import NARROW, SCREENS, WIDE, looks_of
from tests.browser.session import Watched
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.accounts.services import create_login_link

pytestmark = pytest.mark.browser

CURVES = {"run-succeeded", "run-running", "run-failed", "run-queued"}
"""Pages whose charts are drawn as they come into view: one screenful of them."""
Shoot = Callable[..., None]


def visit(page: Page, name: str, address: str) -> None:
    """Open a page and wait until it stands still."""
    page.goto(address)
    expect(page.locator("h1").first).to_be_visible()
    if name == "launch-yaml":
        page.get_by_role("button", name="YAML", exact=True).click()
        expect(page.locator("#yaml")).to_be_visible()
    if page.locator("#curves").count():
        chart = page.locator("#curves article, #curves .state").first
        expect(chart).to_be_visible()
        # Charts are drawn when they come into view; the page may replace them at any time.
        page.evaluate("document.getElementById('curves').scrollIntoView()")
        expect(page.locator("#curves .js-plotly-plot, #curves .state").first).to_be_visible()
        page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(250)


def assert_fits(page: Page, name: str) -> None:
    """Nothing sticks out of the screen sideways."""
    # The screen's width: on a phone the window grows with what sticks out of it.
    wide = page.evaluate("document.documentElement.scrollWidth") - page.viewport_size["width"]
    assert wide <= 0, f"{name} is {wide} px too wide"
    cards = "[...document.querySelectorAll('.runs-table, .datasets-table, .checkpoints')]"
    over = page.evaluate(f"{cards}.map((t) => t.scrollWidth - t.parentElement.clientWidth)")
    assert all(pixels <= 0 for pixels in over), f"a table of {name} is cut off: {over}"


def test_every_page(watched: Watched, ada: User, house: dict[str, str], shoot: Shoot) -> None:
    for screen, options in SCREENS.items():
        page = watched.signed_in(ada, **options)
        for name, address in house.items():
            visit(page, name, address)
            for look in looks_of(page, screen):
                assert_fits(page, f"{name} ({look})")
                shoot(page, f"{name}-{look}", name not in CURVES)


def test_empty_pages(watched: Watched, ada: User, shoot: Shoot) -> None:
    page = watched.signed_in(ada, viewport=WIDE)
    for name, address in (
        ("home", "/"),
        ("runs", "/runs/"),
        ("datasets", "/datasets/"),
        ("workers", "/workers/"),
    ):
        visit(page, name, address)
        shoot(page, f"{name}-empty")
    run = launch(ada)
    for tab in ("", "rollouts/", "logs/", "checkpoints/"):
        visit(page, "run", f"/runs/{run.number}/{tab}")
        shoot(page, f"run-{tab.strip('/') or 'curves'}-empty")
    Story(run).start().finish("failed", "bad_model", "The model was not found.", "Check model.ref.")
    visit(page, "run", f"/runs/{run.number}/")
    shoot(page, "run-failed-empty")


def test_pages_for_those_who_are_not_in(watched: Watched, ada: User, shoot: Shoot) -> None:
    watched.expected += ["404", "410", "403"]
    page = watched.page(viewport=WIDE)
    link = create_login_link(ada)
    for name, address in (("sign-in", "/accounts/login/"), ("sign-in-link", link)):
        visit(page, name, address)
        shoot(page, f"{name}-wide")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    stranger = watched.page(viewport=NARROW)
    visit(stranger, "sign-in", "/accounts/login/")
    assert_fits(stranger, "sign-in (narrow)")
    shoot(stranger, "sign-in-narrow")
    visit(stranger, "sign-in-link", link)
    expect(stranger.get_by_role("heading", name="This link is spent")).to_be_visible()
    shoot(stranger, "sign-in-spent-narrow")
    visit(page, "404", "/nowhere/")
    shoot(page, "error-404-wide")
