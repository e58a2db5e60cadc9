"""Pages for everybody: axe finds nothing serious in either theme, nothing sticks out of a phone,
and the way from signing in to a queued run needs no mouse.
"""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.looks import PHONE, WIDE
from tests.browser.session import Watched
from tests.browser.test_screenshots import assert_fits, visit
from tests.webapp.stories import launch
from webapp.accounts.models import User
from webapp.runs.models import Run

pytestmark = pytest.mark.browser

GRAVE = {"serious", "critical"}
OPTIONS = {"resultTypes": ["violations"], "preload": False}
EMPTY = (
    "/",
    "/runs/",
    "/runs/new/",
    "/datasets/",
    "/glass/",
    "/workers/",
    "/search/?q=zzzz",
    "/projects/",
    "/projects/main/people/",
    "/projects/main/invitations/",
    "/projects/main/audit/?q=zzzz",
    "/account/",
    "/accounts/tokens/",
    "/accounts/webhooks/",
)
OUTSIDE = ("/accounts/login/", "/accounts/signup/", "/accounts/link/spent/", "/invitation/spent/")
TABS = ("", "rollouts/", "config/", "logs/", "checkpoints/", "comments/", "control/stop/")


def violations(page: Page, name: str) -> list[str]:
    """Serious and critical ones, each with the elements it is about."""
    found: list[dict[str, Any]] = Axe().run(page, options=OPTIONS).response["violations"]
    return [
        f"{name}: {each['id']} ({each['help']}): {node['html'][:160]} {node['failureSummary']}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_full_page_has_a_grave_fault(
    theme: str, watched: Watched, ada: User, house: dict[str, str]
) -> None:
    page = watched.signed_in(ada, viewport=WIDE, color_scheme=theme, reduced_motion="reduce")
    found: list[str] = []
    for name, address in house.items():
        visit(page, name, address)
        found += violations(page, f"{name} ({theme})")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_empty_page_has_a_grave_fault(theme: str, watched: Watched, ada: User) -> None:
    watched.expected += ["404", "410"]
    outside = watched.page(viewport=WIDE, color_scheme=theme)
    page = watched.signed_in(ada, viewport=WIDE, color_scheme=theme, reduced_motion="reduce")
    found: list[str] = []
    for address in OUTSIDE:
        visit(outside, "outside", address)
        found += violations(outside, f"{address} ({theme})")
    for address in (*EMPTY, "/nowhere/"):
        visit(page, "empty", address)
        found += violations(page, f"{address} empty ({theme})")
    number = launch(ada).number
    for tab in TABS:
        visit(page, "run", f"/runs/{number}/{tab}")
        found += violations(page, f"run {tab} empty ({theme})")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_dialog_has_a_grave_fault(theme: str, watched: Watched, ada: User) -> None:
    number = launch(ada).number
    page = watched.signed_in(ada, viewport=WIDE, color_scheme=theme, reduced_motion="reduce")
    page.goto(f"/runs/{number}/")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    found = violations(page, f"palette ({theme})")
    page.keyboard.type("zzzzzzzz")
    expect(page.locator("#palette")).to_contain_text("Nothing found")
    found += violations(page, f"palette without hits ({theme})")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    found += violations(page, f"keys ({theme})")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Stop").click()
    expect(page.locator("#dialog")).to_be_visible()
    found += violations(page, f"stop ({theme})")
    assert not found, "\n".join(found)


def test_an_empty_page_fits_a_phone(watched: Watched, ada: User) -> None:
    watched.expected += ["404", "410"]
    outside = watched.page(**PHONE)
    for address in OUTSIDE:
        visit(outside, "outside", address)
        assert_fits(outside, address)
    page = watched.signed_in(ada, **PHONE)
    for address in (*EMPTY, "/nowhere/"):
        visit(page, "empty", address)
        assert_fits(page, f"{address} empty")
    number = launch(ada, "A name of 120 letters without any space".replace(" ", "_") * 3).number
    for tab in TABS:
        visit(page, "run", f"/runs/{number}/{tab}")
        assert_fits(page, f"run {tab}")
    page.get_by_role("link", name="Find").click()
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    assert_fits(page, "palette")


def tab_to(page: Page, wanted: Locator, most: int = 250) -> None:
    """Press Tab until something has the focus; each stop on the way can be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => {
              const now = document.activeElement;
              const ring = getComputedStyle(now).outlineStyle;
              const box = now.getBoundingClientRect();
              const seen = box.width > 0 && box.height > 0;
              return { isShown: ring !== "none" && seen, html: now.outerHTML.slice(0, 160) };
            }"""
        )
        assert stop["isShown"], f"the focus cannot be seen: {stop['html']}"
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
    pytest.fail(f"{most} presses of Tab did not reach {wanted}")


def test_from_signing_in_to_a_queued_run_by_keyboard(
    watched: Watched, ada: User, settings: Any
) -> None:
    # The server reads what it would write itself, not the quick hashes of the tests.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    ada.set_password("a-long-password")
    ada.save()
    page = watched.page(viewport=WIDE)
    page.goto("/runs/")
    expect(page.get_by_label("User name or email")).to_be_focused()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type("a-long-password")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{watched.url}/runs/")  # the sign-in page's address ends in /runs/ too
    tab_to(page, page.get_by_role("link", name="New run").first)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/new/")
    tab_to(page, page.locator(".preset", has_text="Tiny").get_by_role("link", name="Edit first"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/new/?preset=tiny-model**")
    tab_to(page, page.get_by_label("Name", exact=True).first)
    page.keyboard.press("Control+a")
    page.keyboard.type("Launched by keyboard")
    tab_to(page, page.locator("[id='field-resources.device']"))  # not behind a fold
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#preflight .pill")).to_have_text("ready")
    tab_to(page, page.get_by_role("button", name="Launch", exact=True).last)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/1/")
    expect(page.locator("#run-live .pill")).to_have_text("queued")
    assert Run.objects.get().name == "Launched by keyboard"
