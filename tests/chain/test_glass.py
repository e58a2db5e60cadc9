"""A run, and one step under glass from its checkpoint: real worker, real process, real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.training_core.trainer.runs import small_spec
from tests.workers.conftest import StartCelery, state_of, wait_for
from training_core.contract.spec import CheckpointSpec
from training_core.contract.tasknames import TRAIN_RUN
from webapp.accounts.models import User
from webapp.broker import send_task
from webapp.runs.services import launch_run

pytestmark = pytest.mark.browser


def test_from_a_checkpoint_to_every_probability(
    watched: Watched,
    start_worker: StartCelery,
    alice: User,
    shoot: Callable[[Page, str], None],
) -> None:
    start_worker("one", app="workers.celery_app")
    spec = small_spec(checkpoint=CheckpointSpec(interval_steps=4))
    run = launch_run(owner=alice, spec=spec)
    send_task(TRAIN_RUN, run.pk)  # launches of this process are not sent: see `watched`
    wait_for(lambda: state_of(run) in {"succeeded", "failed"}, "the run")
    run.refresh_from_db()
    assert run.state == "succeeded", run.message
    page = watched.signed_in(alice)
    page.goto(f"/runs/{run.number}/checkpoints/")
    page.get_by_role("link", name="Under glass").first.click()
    expect(page.locator("#model option:checked")).to_have_text(re.compile(r"#1 small, step \d+"))
    page.fill("#id_learning_rate", "0.001")
    page.get_by_role("button", name="Take the step").click()
    page.wait_for_url("**/glass/*-*/")
    expect(page.locator("#glass .pill").first).to_have_text("done", timeout=120_000)
    expect(page.locator(".glass-text")).to_have_count(4)
    expect(page.get_by_role("heading", name="Rewards become advantages")).to_be_visible()
    shoot(page, "chain-glass")
    page.get_by_role("link", name="Another step").click()
    page.get_by_label("My own").check()
    expect(page.get_by_label("Domain", exact=True)).to_be_hidden()
    page.get_by_label("Prompt", exact=True).fill("2 + 3 =")
    page.get_by_label("Right answer").fill("5")
    page.fill("#id_learning_rate", "0")
    page.get_by_role("button", name="Take the step").click()
    page.wait_for_url("**/glass/*-*/")
    expect(page.locator("#glass .pill").first).to_have_text("done", timeout=120_000)
    expect(page.locator(".glass-numbers")).to_contain_text("KL to before")
    expect(page.locator(".glass-text .token").first).to_have_class(
        re.compile(r"^token( special)?$")
    )
