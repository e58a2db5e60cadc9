"""Members, invitations, accounts and the audit log in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import NARROW, SCREENS, looks_of
from tests.browser.session import Watched
from tests.webapp.members import become
from tests.webapp.stories import launch
from webapp.accounts.models import Project, Role, User

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("newcomers_stay_out")]


@pytest.fixture
def eve(transactional_db: None) -> User:
    """An admin of the main project and a reviewer of another."""
    eve = User.objects.create_user("eve")
    become(eve, Role.ADMIN)
    become(eve, Role.REVIEWER, Project.objects.create(slug="other", name="Other work"))
    become(User.objects.create_user("bob"), Role.RESEARCHER)
    become(User.objects.create_user("vera", is_active=False), Role.VIEWER)
    return eve


def assert_fits(page: Page) -> None:
    """Nothing sticks out of the screen sideways."""
    # The screen's width: on a phone the window grows with what sticks out of it.
    limit = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= limit, page.url


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_of_people(
    screen: str, watched: Watched, ada: User, eve: User, shoot: Callable[..., None]
) -> None:
    launch(eve, "Sums to a hundred")
    page = watched.signed_in(eve, **SCREENS[screen])
    for name in ("people", "invitations", "audit", ""):
        page.goto(f"/projects/main/{name}/" if name else "/projects/main/")
        for look in looks_of(page, screen):
            assert_fits(page)
            shoot(page, f"project-{name or 'settings'}-{look}")
    for address in ("/projects/", "/account/"):
        page.goto(address)
        for look in looks_of(page, screen):
            assert_fits(page)
            shoot(page, f"people-{address.strip('/')}-{look}")
    root = watched.signed_in(ada, **SCREENS[screen])
    for address in ("/users/", "/audit/", "/projects/"):
        root.goto(address)
        for look in looks_of(root, screen):
            assert_fits(root)
            shoot(root, f"superuser-{address.strip('/')}-{look}")


def test_an_invitation_from_the_link_to_the_runs(
    watched: Watched, eve: User, shoot: Callable[..., None]
) -> None:
    watched.expected += ["410", "422"]
    page = watched.signed_in(eve)
    page.goto("/projects/main/invitations/")
    page.get_by_label("Role", exact=True).select_option("reviewer")
    page.get_by_role("button", name="Make the link").click()
    link = page.locator("#link").inner_text()
    shoot(page, "invitation-made-wide")
    guest = watched.page(viewport=NARROW)
    guest.goto(link)
    guest.get_by_label("Choose a user name").fill("newcomer")
    guest.get_by_label("Choose a password").fill("123")
    shoot(guest, "invitation-narrow")
    guest.get_by_role("button", name="Join").click()
    expect(guest.get_by_text("too short")).to_be_visible()
    guest.get_by_label("Choose a password").fill("a-long-password")
    guest.get_by_role("button", name="Join").click()
    expect(guest.get_by_text("Welcome to Main: you are its reviewer.")).to_be_visible()
    late = watched.page()
    late.goto(link)
    expect(late.get_by_text("This invitation has been used up.")).to_be_visible()
    shoot(late, "invitation-spent-wide")


def test_a_member_is_removed_after_a_question(watched: Watched, eve: User) -> None:
    page = watched.signed_in(eve)
    page.goto("/projects/main/people/")
    row = page.get_by_role("row", name="bob")
    row.get_by_role("link", name="Remove").click()
    expect(page.locator("#dialog")).to_contain_text("Remove bob from Main?")
    page.locator("#dialog").get_by_role("link", name="Keep").click()
    expect(page.locator("#dialog")).to_be_hidden()
    row.get_by_role("link", name="Remove").click()
    page.locator("#dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("bob is no longer in Main.")).to_be_visible()


def test_the_switcher(watched: Watched, eve: User, shoot: Callable[..., None]) -> None:
    launch(eve, "Sums to a hundred")
    page = watched.signed_in(eve)
    page.locator(".switcher summary").click()
    shoot(page, "switcher-wide", False)
    page.get_by_role("button", name="Other work").click()
    expect(page.get_by_text("Nobody has launched one in Other work")).to_be_visible()
    expect(page.get_by_text("Sums to a hundred")).to_have_count(0)
    page.locator(".switcher summary").click()
    page.get_by_role("button", name="All projects").click()
    expect(page.get_by_role("link", name="Sums to a hundred")).to_be_visible()
