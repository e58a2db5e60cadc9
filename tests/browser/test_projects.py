"""What a viewer and a researcher of two projects see, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.looks import SCREENS, looks_of
from tests.browser.session import Watched
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Project, Role, User
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.runs.models import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def bob(transactional_db: None) -> User:
    """Who owns the things that others look at."""
    return User.objects.create_user("bob")


@pytest.fixture
def run(bob: User) -> Run:
    """A run of Bob's in the main project, with two sets of numbers."""
    story = Story(launch(bob, "Sums to a hundred")).start()
    story.evaluate(0, "start", "base model", 0.04)
    for step in range(61, 70):
        story.step(step)
    return story.checkpoint(69).run


def version(owner: User, name: str, project: Project) -> DatasetVersion:
    dataset = Dataset.objects.create(name=name, owner=owner, project=project)
    return DatasetVersion.objects.create(
        dataset=dataset, number=1, state="ready", record_count=20, held_out_count=5
    )


@pytest.mark.parametrize("screen", SCREENS)
def test_a_viewer_looks_and_is_told_who_does(
    screen: str, watched: Watched, bob: User, run: Run, shoot: Callable[..., None]
) -> None:
    watched.expected.append("403")
    vera = User.objects.create_user("vera")
    become(vera, Role.VIEWER)
    become(bob, Role.ADMIN)
    page = watched.signed_in(vera, **SCREENS[screen])
    expect(page.get_by_text("Sums to a hundred")).to_be_visible()
    expect(page.get_by_role("link", name="New run")).to_have_count(0)
    for look in looks_of(page, screen):
        shoot(page, f"viewer-runs-{look}")
    page.goto(f"/runs/{run.number}/")
    expect(page.get_by_text("only they or an admin of Main (admins: bob) steer it")).to_be_visible()
    expect(page.locator("#do-stop")).to_have_count(0)
    for look in looks_of(page, screen):
        shoot(page, f"viewer-run-{look}", False)
    page.goto(f"/runs/{run.number}/checkpoints/")
    expect(page.get_by_text("Restart from here")).to_have_count(0)
    page.goto("/datasets/")
    expect(page.get_by_text("Your role adds none")).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"viewer-datasets-{look}")
    page.goto("/runs/new/")
    expect(page.get_by_text("Your role launches no runs.")).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"viewer-launch-{look}")


@pytest.mark.parametrize("screen", SCREENS)
def test_somebody_in_two_projects_chooses_between_them(
    screen: str, watched: Watched, bob: User, run: Run, shoot: Callable[..., None]
) -> None:
    rita = User.objects.create_user("rita")
    main, other = Project.objects.main(), Project.objects.create(slug="other", name="Other work")
    become(rita, Role.RESEARCHER, other)
    version(bob, "main sums", main)
    version(bob, "other sums", other)
    page = watched.signed_in(rita, **SCREENS[screen])
    expect(page.get_by_text("in Main")).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"researcher-runs-{look}")
    page.goto(f"/runs/new/?from={run.number}")
    choice = page.get_by_label("Project", exact=True)
    expect(choice).to_have_value("main")
    for look in looks_of(page, screen):
        shoot(page, f"researcher-launch-{look}", False)
    page.goto("/runs/new/")
    page.get_by_label("Project", exact=True).select_option("main")
    page.get_by_role("button", name="YAML", exact=True).click()
    expect(page.locator("#yaml")).to_be_visible()
    expect(page.get_by_label("Project", exact=True)).to_have_value("main")
    page.goto("/datasets/")
    expect(page.get_by_text("in Other work")).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"researcher-datasets-{look}")
    page.goto("/datasets/upload/")
    expect(page.get_by_label("Project", exact=True)).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"researcher-upload-{look}")
    page.goto(f"/runs/{run.number}/")
    expect(page.get_by_text("bob in Main")).to_be_visible()
    for look in looks_of(page, screen):
        shoot(page, f"researcher-run-{look}", False)


def test_another_project_offers_its_own_datasets(watched: Watched, bob: User) -> None:
    rita = User.objects.create_user("rita")
    main, other = Project.objects.main(), Project.objects.create(slug="other", name="Other work")
    become(rita, Role.RESEARCHER, other)
    chosen = version(bob, "main sums", main)
    version(bob, "other sums", other)
    page = watched.signed_in(rita)
    page.goto(f"/runs/new/?dataset={chosen.pk}")
    offered = page.locator("option", has_text="sums")
    expect(offered).to_have_count(1)
    expect(offered).to_contain_text("main sums")
    page.get_by_label("Project", exact=True).select_option("other")
    expect(page.locator("option", has_text="other sums")).to_have_count(1)
    expect(page.locator("option", has_text="main sums")).to_have_count(0)
    fault = page.get_by_text("The project Other work has no such dataset version")
    expect(fault.first).to_be_visible()
