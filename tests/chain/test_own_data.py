"""From a file to a launched run: upload, proposals, a real base model that tries, launch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.workers.conftest import StartCelery
from webapp.accounts.models import User
from webapp.datasets import services as datasets
from webapp.datasets.models import DatasetImport
from webapp.glass.models import GlassStep
from webapp.runs.models import Run

pytestmark = pytest.mark.browser


def test_from_a_file_to_a_run(
    watched: Watched,
    start_worker: StartCelery,
    alice: User,
    tmp_path: Path,
    shoot: Callable[[Page, str], None],
) -> None:
    start_worker("one", app="workers.celery_app")
    file = tmp_path / "say it.csv"
    file.write_text("question,answer\n" + "".join(f"say {n},{n}\n" for n in range(40)))
    page = watched.signed_in(alice)
    page.goto("/datasets/upload/")
    page.locator("#file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Choose the columns")).to_be_visible()
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/datasets/imports/*/")
    datasets.run_import(DatasetImport.objects.get().pk)  # no worker of the cpu queue is up here
    page.get_by_role("link", name="Check and launch").click()

    expect(page.get_by_label("Model and program")).to_have_value("tiny-model")
    expect(page.get_by_label("Compare answers")).to_have_value("numbers")
    expect(page.locator(".check-reply-right")).to_have_count(3)
    expect(page.locator("#check-prompts .record")).to_have_count(5)
    page.get_by_label("System prompt").fill("Copy it.")
    expect(page.locator("#check-prompts .record").first).to_contain_text("Copy it.")
    page.get_by_label("RL (steps)").fill("2")
    page.get_by_label("Warm-up (steps)").fill("2")
    page.get_by_role("button", name="Ask the base model").click()
    page.wait_for_url("**/check/?tryout=*")
    expect(page.locator("#glass .pill").first).to_have_text("done", timeout=120_000)
    expect(page.locator("#verdict")).to_contain_text("The base model never solves it")
    expect(page.locator("#verdict")).to_contain_text("The run begins with 2 steps of warm-up")
    expect(page.locator(".tryout-row")).to_have_count(8)
    expect(page.locator(".tryout-try")).to_have_count(32)
    page.locator(".tryout-row").first.get_by_text("As the model reads it").click()
    expect(page.locator(".tryout-row .completion-text").first).to_contain_text("Copy it.")
    expect(page.get_by_label("RL (steps)")).to_have_value("2")
    shoot(page, "chain-own-data")

    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/runs/1/")
    expect(page.locator("#run-live .pill").first).to_have_text("succeeded", timeout=120_000)
    spec = Run.objects.get().read_spec()
    assert [stage.steps for stage in spec.stages] == [2, 2]
    assert spec.domains[0].system_prompt == "Copy it."
    assert GlassStep.objects.get().read_tryout().domain.system_prompt == "Copy it."
