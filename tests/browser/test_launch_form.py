"""The launch form in a real browser: live checks, structure, YAML both ways, double clicks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.session import Watched
from webapp.accounts.models import User
from webapp.runs.models import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def page(watched: Watched, ada: User) -> Page:
    page = watched.signed_in(ada)
    page.goto("/runs/new/?preset=tiny-model")
    return page


def field(page: Page, path: str):
    return page.locator(f"[id='field-{path}']")


def test_an_error_appears_at_its_field_while_typing(page: Page) -> None:
    steps = field(page, "stages.1.steps")
    steps.fill("many")
    error = page.locator("[data-error-for='stages.1.steps']")
    expect(error).to_have_text("Must be a whole number; got 'many'.")
    expect(steps).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#preflight .pill")).to_have_text("1 to mend")
    steps.fill("70")
    expect(error).to_be_empty()
    expect(page.locator("#preflight")).to_contain_text("SFT + 70 RL")
    expect(page.locator("#preflight")).to_contain_text("1 change against")


def test_an_error_behind_the_fold_is_opened_and_reached(page: Page) -> None:
    page.locator("[id='item-stages.1'] .variant summary").click()
    clip = field(page, "stages.1.algorithm.clip_low")
    clip.fill("7")
    page.locator("[id='item-stages.1'] .variant summary").click()
    expect(clip).to_be_hidden()
    link = page.locator("#preflight [data-goto='stages.1.algorithm.clip_low']")
    link.click()
    expect(clip).to_be_focused()


def test_weights_show_their_shares_live(page: Page) -> None:
    share = page.locator("[data-share-for='reward.root.terms.0.weight']")
    expect(share).to_have_text("70 %")
    field(page, "reward.root.terms.0.weight").fill("0.1")
    expect(share).to_have_text("25 %")


def test_parts_are_added_moved_and_removed(page: Page) -> None:
    field(page, "name").fill("My own")
    page.get_by_role("button", name="Length").click()
    expect(field(page, "reward.root.terms.2.weight")).to_be_focused()
    page.get_by_role("button", name="Supervised warm-up").click()
    expect(page.locator("[id='item-stages.2']")).to_be_visible()
    page.locator("[id='item-stages.2']").get_by_role("button", name="Move up").click()
    expect(field(page, "stages.1.name")).to_have_value("warm-up-2")
    page.locator("[id='item-stages.1']").get_by_role("button", name="Remove").click()
    expect(page.locator("[id='item-stages.2']")).to_have_count(0)
    expect(field(page, "name")).to_have_value("My own")  # nothing typed was lost


def test_yaml_both_ways(page: Page) -> None:
    field(page, "seed").fill("11")
    page.get_by_role("button", name="YAML", exact=True).click()
    text = page.locator("#yaml")
    expect(text).to_be_visible()
    content = text.input_value()
    assert "seed: 11" in content
    text.fill(content.replace("seed: 11", "seed: -3"))
    fault = page.locator("#preflight [data-path='seed']")
    expect(fault).to_contain_text("Must be at least 0")
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.locator("[data-error-for='seed']")).to_contain_text("Must be at least 0")
    field(page, "seed").fill("12")
    expect(page.locator("#preflight .pill")).to_have_text("ready")
    page.locator("[data-launch]").click()
    page.wait_for_url("**/runs/1/")
    assert Run.objects.get().read_spec().seed == 12


def test_what_is_asked_while_the_form_is_rebuilt_is_not_forgotten(page: Page) -> None:
    held: list[Route] = []
    page.route("**/runs/new/", lambda route: route.continue_() if held else held.append(route))
    page.get_by_role("button", name="Reinforcement learning (RL)").click()
    expect(page.get_by_role("button", name="Reinforcement learning (RL)")).to_be_visible()
    page.get_by_role("button", name="YAML", exact=True).click()
    page.wait_for_timeout(300)
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("#yaml")).to_be_visible()
    assert page.locator("#yaml").input_value().count("type: rl") == 2


def test_enter_checks_and_never_launches(page: Page) -> None:
    field(page, "seed").fill("5")
    field(page, "seed").press("Enter")
    expect(page.get_by_role("heading", name="New run")).to_be_visible()
    expect(field(page, "seed")).to_have_value("5")
    assert not Run.objects.exists()


def test_a_double_click_launches_once(page: Page) -> None:
    page.locator("[data-launch]").dblclick()
    expect(page).to_have_url(re.compile("/runs/1/$"))  # the second click may cut the first short
    expect(page.locator("#run-live")).to_be_visible()
    assert Run.objects.count() == 1


def test_finding_a_setting(page: Page) -> None:
    page.get_by_placeholder("Find a setting").fill("micro batch")
    expect(field(page, "resources.micro_batch_tokens")).to_be_visible()
    expect(field(page, "name")).to_be_hidden()
    page.get_by_placeholder("Find a setting").fill("")
    expect(field(page, "name")).to_be_visible()
