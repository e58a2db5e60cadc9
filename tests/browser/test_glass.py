"""A step under glass in a real browser: it grows, ends, and shows its tokens in numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.looks import NARROW, WIDE, looks_of
from tests.browser.session import Watched
from tests.webapp.glass.steps import ask, claim, fail, finish, make_result, show
from tests.webapp.stories import Story, launch
from training_core.contract.glass import GlassEnd
from webapp import lifecycle
from webapp.accounts.models import Project, User
from webapp.glass import dispatch
from webapp.glass.models import GlassStep

pytestmark = pytest.mark.browser
Shoot = Callable[..., None]


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


def test_a_step_grows_and_ends_without_a_reload(watched: Watched, ada: User) -> None:
    step = ask(ada)
    page = watched.signed_in(ada)
    page.goto(f"/glass/{step.pk}/")
    expect(page.get_by_text("It waits for a slot")).to_be_visible()
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    held = claim(step)
    expect(page.locator("#glass .pill").first).to_have_text("running")
    show(step, "sample", 1, "<answer>15", "15", "", "I think")
    expect(page.locator(".completion-text").nth(3)).to_have_text("I think")
    held.directory.write_result(make_result())
    lifecycle.finish_glass(held, GlassEnd(outcome="done", cause="done", message="Done."))
    expect(page.locator("#glass .pill").first).to_have_text("done")
    expect(page.locator("#announce")).to_have_text("The step is done.")
    card = page.locator(".completion").first
    expect(card.locator(".token").first).to_have_text("<an")
    card.get_by_text("Every token in numbers").click()
    expect(card.get_by_role("row")).to_have_count(9)
    expect(card.get_by_role("row").nth(1)).to_contain_text("0.8187")


def test_the_form_follows_the_model_and_the_kind_of_prompt(watched: Watched, ada: User) -> None:
    watched.expected.append("status of 422")
    Project.objects.main()  # gone with the test before
    Story(launch(ada)).start().step(61).checkpoint(61)
    page = watched.signed_in(ada)
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("**/glass/")
    expect(page.get_by_label("Go on with the run's optimiser")).to_be_visible()
    page.get_by_label("Model").select_option("base:tiny")
    page.wait_for_url("**/glass/?model=base%3Atiny")
    expect(page.get_by_label("Go on with the run's optimiser")).to_have_count(0)
    expect(page.get_by_label("Right answer")).to_be_hidden()
    page.get_by_label("My own").check()
    expect(page.get_by_label("Prompt number")).to_be_hidden()
    page.get_by_label("Prompt", exact=True).fill("7 =")
    page.get_by_role("button", name="Take the step").click()
    expect(page.get_by_text("Give the right answer, so that rewards can compare.")).to_be_visible()
    page.get_by_label("Right answer").fill("7")
    page.get_by_role("button", name="Take the step").click()
    page.wait_for_url("**/glass/*-*/")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()


def test_every_state_looked_at(watched: Watched, ada: User, shoot: Shoot) -> None:
    addresses = tell_states(ada)
    for screen, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page = watched.signed_in(ada, viewport=viewport)
        for name, address in addresses.items():
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            for look in looks_of(page, screen):
                shoot(page, f"glass-{name}-{look}")
                width = page.evaluate("document.documentElement.scrollWidth")
                assert width <= viewport["width"], f"{name} ({look}) overflows"


def tell_states(ada: User) -> dict[str, str]:
    """A step in each state; name to address."""
    found: dict[str, GlassStep] = {"waiting": ask(ada), "running": ask(ada), "loading": ask(ada)}
    claim(found["loading"])
    claim(found["running"])
    show(found["running"], "sample", 1, "<answer>15</answer><|eos|>", "15 is", "", "I think that")
    found["done"] = finish(ask(ada))
    found["dead"] = finish(ask(ada), make_result((0.3, 0.3, 0.3, 0.3)))
    words = "<img src=x onerror=alert(1)> 奖励 مكافأة 👩‍👩‍👧\n\nthen " + "a long word " * 20
    found["mixed"] = finish(
        ask(ada), make_result((1.0, None, 0.0, 0.0), (words, "12", "", "no\nanswer"))
    )
    found["failed"] = fail(
        ask(ada),
        "out_of_memory",
        "Memory ran out: 12.3 GB were asked for.",
        "Ask for fewer or shorter completions, or choose a smaller model.",
    )
    found["cancelled"] = ask(ada)
    GlassStep.objects.filter(pk=found["cancelled"].pk).update(
        state="cancelled", message="Cancelled by ada before a worker had it."
    )
    pages = {name: f"/glass/{step.pk}/" for name, step in found.items()}
    return {"index": "/glass/", "index-base": "/glass/?model=base:tiny", **pages}
