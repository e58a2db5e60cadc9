"""A server that is away and a session that has ended: live pages say so and know the way on."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User

pytestmark = pytest.mark.browser

AWAY = ["ERR_INTERNET_DISCONNECTED", "ERR_NETWORK", "htmx:afterRequest", "htmx:sendError"]
PAGES = ("/", "/runs/", "/runs/1/", "/runs/1/rollouts/", "/workers/", "/datasets/")
SLOW_MS = 20_000
"""A connection that breaks off is noticed by its silence."""


@pytest.fixture
def story(ada: User) -> Story:
    """A run at work with curves and rollouts."""
    story = Story(launch(ada)).start()
    story.evaluate(0, "start", "base model", 0.04)
    return story.step(61).rollouts(61).phase(62, "rollout", 1, 8)


def trouble(page: Page):
    return page.locator("#trouble")


@pytest.mark.parametrize("address", PAGES)
def test_a_server_that_is_away_is_said_and_waited_for(
    address: str, watched: Watched, ada: User, story: Story
) -> None:
    watched.expected += AWAY
    page = watched.signed_in(ada)
    page.goto(address)
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    expect(trouble(page)).to_be_hidden()
    page.context.set_offline(True)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('htmx:sendError'))")
    expect(trouble(page)).to_contain_text("The server cannot be reached", timeout=SLOW_MS)
    page.context.set_offline(False)
    expect(trouble(page)).to_be_hidden(timeout=SLOW_MS)


def test_a_page_catches_up_when_the_server_is_back(
    watched: Watched, ada: User, story: Story
) -> None:
    watched.expected += AWAY
    page = watched.signed_in(ada)
    page.goto("/runs/1/")
    expect(page.locator("[data-run-step]")).to_have_text("61")
    page.context.set_offline(True)
    page.get_by_role("button", name="Evaluate").click()
    expect(trouble(page)).to_be_visible(timeout=SLOW_MS)
    expect(page.locator("#run-live h1")).to_be_visible()
    story.step(64)
    page.context.set_offline(False)
    expect(trouble(page)).to_be_hidden(timeout=SLOW_MS)
    expect(page.locator("[data-run-step]")).to_have_text("64", timeout=SLOW_MS)


def test_parts_that_are_asked_for_at_once_all_come(
    watched: Watched, ada: User, story: Story
) -> None:
    """htmx alone keeps the last of several that are asked for while it is busy."""
    page = watched.signed_in(ada)
    page.goto("/runs/1/")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    old = page.evaluate(
        """async () => {
          const { refresh } = await import("/static/js/ui/live.js");
          const { liveUrl, changedUrl, evaluationsUrl } = document.getElementById("run").dataset;
          const parts = { "run-live": liveUrl, "run-changed": changedUrl,
            "run-evals": evaluationsUrl };
          const was = Object.keys(parts).map((id) => document.getElementById(id));
          const asked = Object.entries(parts).map(([id, url]) => refresh(`#${id}`, url));
          await Promise.all(asked);
          return was.filter((part) => part.isConnected).map((part) => part.id);
        }"""
    )
    assert old == []


def test_a_session_that_ended_keeps_the_page_and_leads_to_the_sign_in(
    watched: Watched, ada: User, story: Story
) -> None:
    watched.expected.append("401")
    page = watched.signed_in(ada)
    page.goto("/runs/1/")
    Session.objects.all().delete()
    page.get_by_role("button", name="Evaluate").click()
    expect(trouble(page)).to_contain_text("You are signed out")
    expect(page.locator("#run-live h1")).to_be_visible()
    trouble(page).get_by_role("link", name="Sign in again").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert "next=/runs/1/" in page.url


def test_charts_without_a_session_say_so_with_a_way_in(
    watched: Watched, ada: User, story: Story
) -> None:
    watched.expected.append("401")
    page = watched.signed_in(ada)
    page.route(re.compile(r"//[^/]+/live/"), lambda route: route.abort())
    watched.expected.append("ERR_FAILED")
    page.route("**/api/runs/**", lambda route: route.fulfill(status=401, json={}))
    page.goto("/runs/1/")
    expect(page.locator("#curves .state").first).to_contain_text("You are signed out.")
    Session.objects.all().delete()
    page.locator("#curves").get_by_role("button", name="Sign in again").first.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.parametrize("name", ["Table", "Chart", "List of the home page", "Palette", "Field"])
def test_the_style_guide_shows_five_states(name: str, watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    page.goto("/ui/styleguide/")
    states = page.get_by_role("region", name=name, exact=True).locator("[data-state-name]")
    found = [states.nth(i).get_attribute("data-state-name") for i in range(states.count())]
    assert found == ["empty", "loading", "error", "stale", "forbidden"]
