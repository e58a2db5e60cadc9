"""Comments in a real browser: written, seen by somebody else at once, counted on the tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.looks import DESK, PHONE
from tests.browser.session import Watched
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User

pytestmark = pytest.mark.browser


def test_a_comment_reaches_another_page(
    watched: Watched, ada: User, shoot: Callable[..., None]
) -> None:
    bob = User.objects.create_user("bob")
    story = Story(launch(bob, "Sums to a hundred")).start()
    for step in range(55, 68):
        story.step(step)
    run = story.rollouts(61).run
    reader = watched.signed_in(bob, **PHONE)
    reader.goto(f"/runs/{run.number}/comments/")
    expect(reader.get_by_text("Nobody has said anything yet")).to_be_visible()
    expect(reader.locator(".live-word")).to_have_text("live")
    curves = watched.signed_in(bob, **DESK)
    curves.goto(f"/runs/{run.number}/")
    expect(curves.locator(".live-word")).to_have_text("live")
    mark = curves.locator(".annotation-text", has_text="comment")
    expect(curves.locator(".js-plotly-plot").first).to_be_visible()
    expect(mark).to_have_count(0)
    page = watched.signed_in(ada, **DESK)
    page.goto(f"/runs/{run.number}/comments/")
    page.get_by_label("Comment", exact=True).fill("**Look** at `61`, @bob:\n\n- odd\n- even")
    page.get_by_label("Step", exact=True).fill("61")
    page.get_by_role("button", name="Say it").click()
    expect(page.locator(".comment .mention")).to_have_text("@bob")
    expect(reader.locator(".comment strong", has_text="Look")).to_be_visible()
    expect(reader.locator("[data-comment-count]")).to_have_text("1")
    expect(mark.first).to_be_visible()
    shoot(curves, "comments-curves-wide")
    shoot(page, "comments-wide")
    shoot(reader, "comments-narrow")
    page.goto(f"/runs/{run.number}/rollouts/")
    page.get_by_role("link", name="Comment", exact=True).click()
    expect(page.get_by_label("Comment on rollouts")).to_be_visible()


def test_a_comment_is_deleted_after_a_question(watched: Watched, ada: User) -> None:
    run = Story(launch(ada)).start().step(61).run
    page = watched.signed_in(ada)
    page.goto(f"/runs/{run.number}/comments/")
    page.get_by_label("Comment", exact=True).fill("Never mind")
    page.get_by_role("button", name="Say it").click()
    page.get_by_role("link", name="Delete").click()
    expect(page.locator("#dialog")).to_contain_text("Delete this comment of ada?")
    page.locator("#dialog").get_by_role("link", name="Keep").click()
    page.get_by_role("link", name="Delete").click()
    page.locator("#dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nobody has said anything yet")).to_be_visible()
    expect(page.locator("[data-comment-count]")).to_be_hidden()
