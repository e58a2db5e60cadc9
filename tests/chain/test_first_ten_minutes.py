"""The walk of docs/first-ten-minutes.md, with everything real: from the empty home page to a
result, then with a file of one's own.

With DOC_PICTURES=1 it walks the preset as it stands, writes the pictures of the page into docs/img/
and prints how many seconds each step took; without, both runs are a few steps long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.workers.conftest import StartCelery
from webapp.accounts.models import User
from webapp.launcher import paths

pytestmark = pytest.mark.browser

WRITES = os.environ.get("DOC_PICTURES") == "1"
FOLDER = paths.REPOSITORY / "docs" / "img"
LONG_MS = 600_000 if WRITES else 180_000


class Walk:
    """A page, its pictures and its clock."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.began = time.perf_counter()
        self.seconds: list[tuple[str, float]] = []

    def step(self, name: str) -> None:
        """A step of the walk is done: note its seconds, take its picture."""
        now = time.perf_counter()
        self.seconds.append((name, now - self.began))
        if WRITES:
            FOLDER.mkdir(exist_ok=True)
            self.page.evaluate("scrollTo(0, 0)")
            self.page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
        self.began = time.perf_counter()


@pytest.fixture
def walk(watched: Watched, alice: User) -> Iterator[Walk]:
    page = watched.signed_in(alice, viewport={"width": 1280, "height": 800})
    page.goto("/")
    walk = Walk(page)
    yield walk
    for name, seconds in walk.seconds:
        print(f"{name}: {seconds:.1f} s")


def shorten(page: Page) -> None:
    """A few steps are enough to see that the walk goes on; pictures need the whole preset."""
    if not WRITES:
        page.fill("[name='stages.0.steps']", "4")
        page.fill("[name='stages.1.steps']", "8")
        page.fill("[name='domains.0.held_out_items']", "8")
    expect(page.locator("#preflight .pill")).to_have_text("ready")


def test_the_first_ten_minutes(
    walk: Walk, start_celery: StartCelery, start_worker: StartCelery, tmp_path: Path
) -> None:
    page = walk.page
    expect(page.get_by_role("heading", name="Launch your first experiment")).to_be_visible()
    start_worker("one", app="workers.celery_app")
    start_celery(
        "worker", "--queues=cpu", "--pool=solo", "--hostname=c@t", app="workers.celery_app"
    )
    expect(page.locator(".first-step.is-done")).to_have_count(1, timeout=LONG_MS)
    walk.step("1-home")
    launch_the_tiny_preset(walk)
    wait_for_the_result(walk)
    bring_a_file(walk, tmp_path)


def launch_the_tiny_preset(walk: Walk) -> None:
    """From the card to the first answers of the base model."""
    page = walk.page
    page.get_by_role("link", name="Edit first: Tiny model").click()
    page.wait_for_url("**/runs/new/**")
    shorten(page)
    walk.step("2-launch")
    page.locator("[data-launch]").click()
    page.wait_for_url("**/runs/1/")
    expect(page.locator(".eval-card").first).to_be_visible(timeout=LONG_MS)
    walk.step("3-base")


def wait_for_the_result(walk: Walk) -> None:
    """The curves move until the card says what changed."""
    page = walk.page
    expect(page.locator("#run-live .pill").first).to_have_text("succeeded", timeout=LONG_MS)
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator(".changed-headline")).to_contain_text("held-out items; the base model")
    expect(page.locator(".next-actions li")).to_have_count(3)
    walk.step("4-changed")
    page.get_by_role("link", name="Rollouts", exact=True).click()
    expect(page.locator(".completion").first).to_be_visible()
    walk.step("5-rollouts")


def bring_a_file(walk: Walk, tmp_path: Path) -> None:
    """A CSV of one's own, trained on and compared."""
    page = walk.page
    file = tmp_path / "numbers.csv"
    rows = "".join(f"Say {i}.,{i}\n" for i in range(100, 900, 7))
    file.write_text(f"question,answer\n{rows}")
    page.keyboard.press("Control+k")
    page.keyboard.type("upload")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Upload a dataset")
    walk.step("6-find")
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasets/upload/")
    page.locator("#file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Choose the columns")).to_be_visible()
    walk.step("7-columns")
    page.get_by_role("button", name="Import").click()
    page.get_by_role("link", name="Use in a run").click(timeout=LONG_MS)
    page.get_by_role("link", name="Tiny model, one minute").click()
    page.wait_for_url("**preset=tiny-model")
    shorten(page)
    walk.step("8-own-data")
    page.locator("[data-launch]").click()
    page.wait_for_url("**/runs/2/")
    expect(page.locator("#run-live .pill").first).to_have_text("succeeded", timeout=LONG_MS)
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    walk.step("9-own-result")
    page.goto("/")
    expect(page.locator(".home-result")).to_have_count(2)
    walk.step("10-results")
