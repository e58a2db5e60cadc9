"""The command palette by keyboard alone, and when the server is away or the session has ended."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, Route, expect

from tests.browser.session import Watched
from tests.webapp.stories import launch
from webapp.accounts.models import User

pytestmark = pytest.mark.browser


def open_palette(page: Page) -> None:
    """Press Ctrl+K and wait for the first answer."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find anything")).to_be_focused()
    expect(page.locator("#palette [role=option]").first).to_be_visible()


def test_a_run_is_opened_by_keyboard(watched: Watched, ada: User) -> None:
    launch(ada, "Longer warm-up")
    launch(ada, "Shuffled control")
    page = watched.signed_in(ada)
    open_palette(page)
    page.keyboard.type("warm")
    chosen = page.locator("#palette [aria-selected=true]")
    expect(chosen).to_contain_text("Longer warm-up")
    field = page.get_by_role("combobox", name="Find anything")
    expect(field).to_have_attribute("aria-activedescendant", re.compile("palette-runs-1"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/1/")
    page.goto("/datasets/")
    open_palette(page)
    expect(page.locator("#palette .palette-label").first).to_have_text("Recent")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/1/")


def test_arrows_walk_round_and_escape_gives_the_focus_back(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    opener = page.get_by_role("link", name="Find")
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    options = page.locator("#palette [role=option]")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(opener).to_be_focused()


def test_it_opens_while_typing_and_does_what_the_page_can_do(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    page.goto("/runs/new/")
    page.locator("[id='field-name']").focus()
    open_palette(page)
    page.keyboard.type("dark")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("colour theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    open_palette(page)
    page.keyboard.type("shortcuts")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("keyboard shortcuts")
    page.keyboard.press("Enter")
    expect(page.locator("#keys")).to_be_visible()
    expect(page.locator("#keys")).to_contain_text("Find anything")


def test_a_command_of_the_open_run_asks_first(watched: Watched, ada: User) -> None:
    launch(ada, "Mine")
    page = watched.signed_in(ada)
    page.goto("/runs/1/")
    open_palette(page)
    page.keyboard.type("stop")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Stop #1 Mine")
    page.keyboard.press("Enter")
    expect(page.locator("#dialog")).to_contain_text("Stop this run?")


def test_nothing_found_and_a_server_that_is_away_say_so(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    open_palette(page)
    page.keyboard.type("zzzzzzzz")
    expect(page.locator("#palette")).to_contain_text("Nothing found for “zzzzzzzz”")
    watched.expected.append("ERR_FAILED")
    away = re.compile(r".*/search/\?.*")

    def fail(route: Route) -> None:
        route.abort()

    page.route(away, fail)
    page.keyboard.press("Backspace")
    expect(page.locator("#palette")).to_contain_text("The server cannot be reached")
    page.unroute(away)
    page.keyboard.press("Backspace")
    expect(page.locator("#palette")).to_contain_text("Nothing found")


def test_a_session_that_ended_leads_to_the_sign_in_page(watched: Watched, ada: User) -> None:
    watched.expected.append("401")  # the live channel hears it too, at any time
    page = watched.signed_in(ada)
    Session.objects.all().delete()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_contain_text("You are signed out.")
    page.locator("#palette").get_by_role("link", name="Sign in again").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_button_is_a_page_without_scripts(watched: Watched, ada: User) -> None:
    launch(ada, "Longer warm-up")
    page = watched.signed_in(ada, java_script_enabled=False)
    page.get_by_role("link", name="Find").click()
    page.get_by_role("searchbox", name="Find anything").fill("warm")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="Longer warm-up").click()
    page.wait_for_url("**/runs/1/")
