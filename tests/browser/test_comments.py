"""Comments in a real browser: written, seen by somebody else at once, counted on the tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.session import Watched
from tests.browser.test_projects import VARIANTS
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User

pytestmark = pytest.mark.browser


def test_a_comment_reaches_another_page(
    watched: Watched, ada: User, shoot: Callable[..., None]
) -> None:
    bob = User.objects.create_user("bob")
    run = Story(launch(bob, "Sums to a hundred")).start().step(61).rollouts(61).run
    reader = watched.signed_in(bob, **VARIANTS["narrow"])
    reader.goto(f"/runs/{run.number}/comments/")
    expect(reader.get_by_text("Nobody has said anything yet")).to_be_visible()
    expect(reader.locator(".live-word")).to_have_text("live")
    page = watched.signed_in(ada, **VARIANTS["wide"])
    page.goto(f"/runs/{run.number}/comments/")
    page.get_by_label("Comment", exact=True).fill("**Look** at `61`, @bob:\n\n- odd\n- even")
    page.get_by_label("Step", exact=True).fill("61")
    page.get_by_role("button", name="Say it").click()
    expect(page.locator(".comment .mention")).to_have_text("@bob")
    expect(reader.locator(".comment strong", has_text="Look")).to_be_visible()
    expect(reader.locator("[data-comment-count]")).to_have_text("1")
    shoot(page, "comments-wide")
    shoot(reader, "comments-narrow")
    page.goto(f"/runs/{run.number}/rollouts/")
    page.get_by_role("link", name="Comment", exact=True).click()
    expect(page.get_by_label("Comment on rollouts")).to_be_visible()
