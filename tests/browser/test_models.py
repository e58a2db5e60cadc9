"""The models page in a real browser: an export is asked for, watched, downloaded and deleted."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import DESK, SCREENS, looks_of
from tests.browser.session import Watched
from tests.webapp.registry.exports import CONTENT, make_export, make_ready
from tests.webapp.stories import Story, launch
from training_core.contract.exports import ExportProgress
from webapp.accounts.models import User
from webapp.registry import services
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint

pytestmark = pytest.mark.browser
Shoot = Callable[..., None]


def saved_run(owner: User, name: str = "Sums to a hundred") -> Checkpoint:
    """A run that was evaluated and saved at step 61."""
    story = Story(launch(owner, name)).start().evaluate(0, "start", "base model", 0.04).step(61)
    story.evaluate(61, "interval", "now", 0.4, [(0, "base model", 0.36)]).checkpoint(61, best=True)
    return Checkpoint.objects.select_related("run__project").get(run=story.run)


def test_an_export_from_the_wish_to_the_file(
    watched: Watched, ada: User, shoot: Shoot, tmp_path: Path
) -> None:
    checkpoint = saved_run(ada)
    page = watched.signed_in(ada, **DESK)
    page.goto(f"/runs/{checkpoint.run.number}/checkpoints/")
    page.get_by_role("link", name="Download").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Download a checkpoint")).to_be_visible()
    shoot(page, "models-dialog-wide", full_page=False)
    dialog.get_by_label("Half the size").check()
    dialog.get_by_role("button", name="Make the folder").click()
    expect(page.get_by_text("Waits for a worker of the cpu queue")).to_be_visible()
    expect(page.locator(".live-word")).to_have_text("live")
    export = ModelExport.objects.get()
    claim = services.claim_export(export.pk)
    assert claim is not None
    words = "Loading the folder as its user will"
    services.report_export(claim, ExportProgress(done=3, total=5, message=words))
    expect(page.get_by_text(words)).to_be_visible()
    shoot(page, "models-export-making")
    page.goto("/models/")
    ModelExport.objects.all().delete()
    ready = make_ready(checkpoint, ada, dtype="bfloat16")
    page.goto(f"/models/exports/{ready.pk}/")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    target = tmp_path / "model.tar"
    started.value.save_as(target)
    assert started.value.suggested_filename == f"{ready.slug}.tar"
    with tarfile.open(target) as tar:
        assert tar.getnames() == [f"{ready.slug}/{name}" for name in CONTENT]
    page.get_by_role("link", name="Delete").click()
    expect(dialog.get_by_text("downloads that are under way still end")).to_be_visible()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("The export is deleted.")).to_be_visible()
    expect(page.get_by_text("Nothing exported yet")).to_be_visible()


def test_the_list_hears_of_an_export_that_somebody_else_asks_for(
    watched: Watched, ada: User
) -> None:
    checkpoint = saved_run(ada)
    page = watched.signed_in(ada, **DESK)
    page.goto("/models/")
    expect(page.locator(".live-word")).to_have_text("live")
    bob = User.objects.create_user("bob")
    services.request_export(checkpoint, bob, "float32")
    expect(page.locator("#exports").get_by_text("bob")).to_be_visible()


@pytest.mark.parametrize("screen", SCREENS)
def test_every_state_of_the_models_page(
    screen: str, watched: Watched, ada: User, shoot: Shoot
) -> None:
    page = watched.signed_in(ada, **SCREENS[screen])
    look(page, "/models/", "models-empty", screen, shoot)
    first = saved_run(ada)
    second = saved_run(ada, "<img src=x onerror=alert(1)> 奖励 مكافأة " + "long" * 12)
    third = saved_run(ada, "Saved and not evaluated")
    ready = make_ready(first, ada)
    make_ready(second, ada, expires_at=None)
    failed = make_export(
        third,
        ada,
        state="failed",
        message="The checkpoint after step 61 is damaged: model.safetensors has 12 bytes.",
        advice="Export another checkpoint of the run.",
    )
    making = {"state": "running", "done": 2_000_000, "total": 5_000_000, "doing": "Writing"}
    make_export(first, ada, dtype="bfloat16", **making)
    make_export(second, ada, dtype="bfloat16")
    look(page, "/models/", "models-full", screen, shoot)
    look(page, f"/models/exports/{ready.pk}/", "models-export", screen, shoot)
    look(page, f"/models/exports/{failed.pk}/", "models-failed", screen, shoot)
    look(page, f"/models/checkpoints/{third.pk}/export/", "models-choose", screen, shoot)
    look(page, f"/models/exports/{ready.pk}/delete/", "models-delete", screen, shoot)
    look(page, f"/runs/{first.run.number}/checkpoints/", "models-tab", screen, shoot)


def look(page: Page, address: str, name: str, screen: str, shoot: Shoot) -> None:
    """Open, wait, check that nothing overflows the screen, and photograph each look of it."""
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for seen in looks_of(page, screen):
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, f"{name} ({seen}): {overflow} px wider than the screen"
        shoot(page, f"{name}-{seen}")
