"""From the one-time link to a finished run, as a person sees it, without a reload."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.webapp.stories import Story
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import User
from webapp.runs.models import Run

pytestmark = pytest.mark.browser
STEPS = TINY_COPY.spec.total_steps


def test_from_the_link_to_a_finished_run(
    watched: Watched, ada: User, shoot: Callable[[Page, str], None]
) -> None:
    page = watched.signed_in(ada)
    expect(page.get_by_role("heading", name="Launch your first experiment")).to_be_visible()
    card = page.locator(".preset", has_text="Tiny model, one minute")
    card.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/runs/1/")
    expect(page.locator("#run-live .pill")).to_have_text("queued")
    expect(page.get_by_text("Waits for a worker.")).to_be_visible()
    expect(page.locator("#live")).to_have_attribute("data-live", "live")

    story = Story(Run.objects.get()).start()
    expect(page.locator("#run-live .pill").first).to_have_text("running")
    story.phase(1, "rollout", 18, 32, tokens_per_s=212.0)
    expect(page.locator("[data-phase-sentence]")).to_have_text(
        "Step 1: generating 18 of 32 rollouts"
    )
    expect(page.locator("[data-phase-speed]")).to_have_text("212 tokens/s")
    story.evaluate(0, "start", "base model", 0.04)
    expect(page.locator(".eval-card")).to_have_count(1)
    for step in range(1, 6):
        story.step(step)
    expect(page.locator("[data-run-step]")).to_have_text("5")
    chart = page.locator("#curves .js-plotly-plot").first
    expect(chart).to_be_visible()
    story.evaluate(60, "stage_end", "after warm-up", 0.31, [(0, "base model", 0.27)])
    expect(page.locator(".eval-card")).to_have_count(2)
    story.step(STEPS).checkpoint(STEPS, best=True)
    story.finish("succeeded", "done", "The program is done.")
    expect(page.locator("#run-live .pill").first).to_have_text("succeeded")
    expect(page.locator("#announce")).to_have_text("Run 1 is succeeded.")
    shoot(page, "journey-finished")


def test_the_table_of_runs_is_live(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    from_elsewhere = watched.signed_in(ada)
    from_elsewhere.locator(".preset", has_text="Tiny").get_by_role("button", name="Launch").click()
    from_elsewhere.wait_for_url("**/runs/1/")
    row = page.locator("#run-1")
    expect(row).to_be_visible()
    story = Story(Run.objects.get()).start()
    story.step(7)
    expect(row.locator(".pill")).to_have_text("running")
    expect(row).to_contain_text(f"7/{STEPS}")


def test_a_preset_is_launched_with_scripts_off(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada, java_script_enabled=False)
    page.goto("/runs/new/")
    page.locator(".preset", has_text="Tiny").get_by_role("button", name="Launch").click()
    page.wait_for_url("**/runs/1/")
    page.get_by_role("link", name="Stop").click()
    expect(page.get_by_role("heading", name="Stop this run?")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#run-live .pill")).to_have_text("stopped")


def test_stopping_asks_in_a_dialog(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    page.locator(".preset", has_text="Tiny").get_by_role("button", name="Launch").click()
    page.wait_for_url("**/runs/1/")
    Story(Run.objects.get()).start().step(7)
    expect(page.locator("[data-run-step]")).to_have_text("7")
    page.get_by_role("link", name="Stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"now step 7 of {STEPS}")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Evaluate").click()
    expect(page.locator("#toast")).to_have_text("Asked for: the trainer evaluates after this step.")
    expect(page.get_by_text("it happens at the next step boundary")).to_be_visible()
    page.get_by_role("link", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("#run-live .pill").first).to_have_text("stopping")
