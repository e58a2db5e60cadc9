"""The walk of docs/first-ten-minutes.md, with everything real but the length of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks import walk_steps
from tests.browser.session import Watched
from tests.workers.conftest import StartCelery
from webapp.accounts.models import User

pytestmark = pytest.mark.browser
LONG_MS = 180_000


def shorten(page: Page) -> None:
    """A few steps are enough to see that the walk goes on."""
    page.fill("[name='stages.0.steps']", "4")
    page.fill("[name='stages.1.steps']", "8")


def choose_the_tiny_model(page: Page) -> None:
    """SmolLM2 is what is proposed; its weights are not unpacked here."""
    expect(page.get_by_label("Model and program")).to_have_value("teach-smollm2-to-add")
    page.get_by_label("Model and program").select_option("tiny-model")
    page.wait_for_url("**preset=tiny-model")
    expect(page.get_by_label("Compare answers")).to_have_value("words")
    page.get_by_label("Warm-up (steps)").fill("4")
    page.get_by_label("RL (steps)").fill("4")


def test_the_first_ten_minutes(
    watched: Watched,
    alice: User,
    start_celery: StartCelery,
    start_worker: StartCelery,
    tmp_path: Path,
) -> None:
    page = watched.signed_in(alice, viewport={"width": 1280, "height": 800})
    page.goto("/")
    walk = walk_steps.Walk(page, patience_ms=LONG_MS)
    start_worker("one", app="workers.celery_app")
    start_celery(
        "worker", "--queues=cpu", "--pool=solo", "--hostname=c@t", app="workers.celery_app"
    )
    file = tmp_path / "tickets.csv"
    file.write_text(walk_steps.tickets())
    walk_steps.see_the_home_page(walk)
    walk_steps.launch_a_preset(walk, shorten)
    walk_steps.wait_for_the_result(walk, "changed")
    walk_steps.read_rollouts(walk)
    walk_steps.bring_a_file(walk, file)
    walk_steps.check_and_launch(walk, choose_the_tiny_model)
    walk_steps.wait_for_the_result(walk, "own")
    walk_steps.see_both_results(walk)
    assert len(walk.seconds) == 11
