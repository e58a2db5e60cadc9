"""The check page of a dataset in a real browser: it follows the form; each state is looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.looks import NARROW, WIDE, looks_of
from tests.browser.session import Watched
from tests.webapp.glass.steps import claim, fail
from tests.webapp.glass.tryouts import (
    BARE,
    RIGHT,
    WRONG,
    ask_tryout,
    finish_tryout,
    grow,
    make_tryout,
    version_of,
)
from training_core.contract.glass import GlassEnd
from training_core.contract.tryout import TryoutSpec
from webapp import lifecycle
from webapp.accounts.models import User
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets.models import DatasetVersion
from webapp.glass import dispatch
from webapp.glass.models import GlassStep

pytestmark = pytest.mark.browser
QUESTION = "A shop sells pens in boxes of {answer}. How many pens are in {i} boxes, less the last?"


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dispatch, dataset_dispatch):
        monkeypatch.setattr(module, "send_task", lambda *_: True)


@pytest.fixture
def version(ada: User) -> DatasetVersion:
    return version_of(ada, [str(n * 7) for n in range(60)], "pens", QUESTION)


def test_the_page_follows_the_form_and_the_tryout(
    watched: Watched, ada: User, version: DatasetVersion
) -> None:
    page = watched.signed_in(ada)
    page.goto(f"/datasets/versions/{version.pk}/check/")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    page.get_by_label("Compare answers").select_option("words")
    page.get_by_label("System prompt").fill("Only the number, in <answer></answer>.")
    expect(page.locator("#check-prompts .record").first).to_contain_text("Only the number")
    page.get_by_label("RL (steps)").fill("0")
    expect(page.locator("#check-look .pill")).to_have_text("1 to mend")
    page.get_by_label("RL (steps)").fill("4")
    expect(page.locator("#check-look .pill")).to_have_text("ready")
    page.get_by_role("button", name="Ask the base model").click()
    page.wait_for_url("**/check/?tryout=*")
    step = GlassStep.objects.get()
    held = claim(step)
    expect(page.locator("#glass .pill").first).to_have_text("running")
    grow(step, "<answer>7", "I think")
    expect(page.locator(".tryout-try").nth(1)).to_contain_text("I think")
    assert isinstance(held.spec, TryoutSpec)
    page.get_by_label("RL (steps)").fill("5")
    held.directory.write_result(make_tryout(held.spec, RIGHT, BARE))
    lifecycle.finish_glass(held, GlassEnd(outcome="done", cause="done", message="Done."))
    expect(page.locator("#verdict")).to_contain_text("solves 50.0 % of its tries")
    expect(page.locator("#announce")).to_have_text("The tryout is done.")
    expect(page.get_by_label("RL (steps)")).to_have_value("5")
    page.get_by_label("System prompt").fill("Another.")
    expect(page.locator("#check-stale")).to_be_visible()
    page.get_by_label("Model and program").select_option("tiny-model")
    page.wait_for_url("**/check/?preset=tiny-model")
    expect(page.get_by_label("System prompt")).to_have_value("")


def test_every_state_looked_at(
    watched: Watched, ada: User, version: DatasetVersion, shoot: Callable[..., None]
) -> None:
    addresses = tell_states(ada, version)
    for screen, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page = watched.signed_in(ada, viewport=viewport)
        for name, address in addresses.items():
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            for look in looks_of(page, screen):
                shoot(page, f"check-{name}-{look}")
                width = page.evaluate("document.documentElement.scrollWidth")
                assert width <= viewport["width"], f"{name} ({look}) overflows"


def tell_states(ada: User, version: DatasetVersion) -> dict[str, str]:
    """A tryout in each state, and pages without one; name to address."""
    words = version_of(ada, [f"<b>a rather long answer {n}</b>" for n in range(30)], "words " * 8)
    long = version_of(ada, [str(n) for n in range(9)], "long", "{i} " + "x" * 25_000)
    one = version_of(ada, ["7"] * 12, "one answer")
    found = {name: ask_tryout(ada, version) for name in ("waiting", "loading", "running")}
    claim(found["loading"])
    claim(found["running"])
    grow(found["running"], "<answer>7</answer><|im_end|>", "The answer is " + "so " * 40, "", "7")
    found["done"] = finish_tryout(ask_tryout(ada, version), RIGHT, WRONG, BARE, "", WRONG)
    found["never"] = finish_tryout(ask_tryout(ada, version), BARE)
    found["failed"] = fail(
        ask_tryout(ada, version),
        "bad_data",
        "A prompt has 9,211 tokens; the model's context holds 2,048.",
        "Leave such prompts out of the domain, or choose a model with a longer context.",
    )
    found["cancelled"] = ask_tryout(ada, version)
    GlassStep.objects.filter(pk=found["cancelled"].pk).update(
        state="cancelled", message="Cancelled by ada before a worker had it."
    )
    pages = {
        name: f"/datasets/versions/{version.pk}/check/?tryout={step.pk}"
        for name, step in found.items()
    }
    empty = {"empty": version, "words": words, "long": long, "one": one}
    return pages | {name: f"/datasets/versions/{v.pk}/check/" for name, v in empty.items()}
