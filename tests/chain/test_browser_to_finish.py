"""A person signs in, launches, watches a chart move and a run finish; nothing is played."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.workers.conftest import StartCelery, wait_for
from webapp.accounts.models import User
from webapp.runs.models import Run

pytestmark = pytest.mark.browser

DRAWN_POINTS = """
() => Math.max(0, ...[...document.querySelectorAll('article[data-key="reward"] .chart-plot')]
  .flatMap((plot) => (plot.data ?? []).map((trace) => trace.x?.length ?? 0)))
"""


def wait_for_points(page: Page, wanted: int) -> int:
    """Points drawn, once there are enough; the policy forbids the page to poll by itself."""
    wait_for(lambda: page.evaluate(DRAWN_POINTS) >= wanted, f"{wanted} drawn points")
    return int(page.evaluate(DRAWN_POINTS))


def test_from_sign_in_to_a_moving_chart_and_a_finished_run(
    watched: Watched,
    start_worker: StartCelery,
    alice: User,
    shoot: Callable[[Page, str], None],
) -> None:
    start_worker("one", app="workers.celery_app")
    page = watched.signed_in(alice)
    page.goto("/runs/new/?preset=tiny-model")
    page.fill("[name='stages.0.steps']", "6")
    page.fill("[name='stages.1.steps']", "24")
    page.locator("[data-launch]").click()
    page.wait_for_url("**/runs/*/")
    run = Run.objects.get()
    chart = page.locator('article[data-key="reward"]')
    chart.wait_for(timeout=240_000)
    chart.evaluate("(article) => article.scrollIntoView()")
    early = wait_for_points(page, 2)
    wait_for_points(page, early + 1)
    expect(page.locator("#run-live .pill").first).to_have_text("succeeded", timeout=240_000)
    wait_for_points(page, 24)
    shoot(page, "chain-finished")
    page.get_by_role("link", name="Rollouts").click()
    expect(page.locator("main")).to_contain_text("adv.")
    run.refresh_from_db()
    assert run.state == "succeeded"
    assert run.step == 30
