"""The list of first steps ticks itself off and goes away; cards say how long presets take here."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.home.test_home import report_worker
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD, TINY_COPY
from webapp.accounts.models import Project, Role, User
from webapp.runs.first_steps import read_first_steps
from webapp.runs.models import Attempt, Run
from webapp.runs.preset_cards import Timing, preset_cards, timing_of
from webapp.runs.services import launch_run

pytestmark = pytest.mark.django_db


def ticks(user: User) -> list[bool]:
    return [step.is_done for step in read_first_steps(user, may_launch=True).steps]


def test_the_steps_tick_themselves_off(ada: User, settings: Any) -> None:
    assert ticks(ada) == [False] * 5
    file = settings.MODELS_DIR / "progress.json"
    file.write_text(json.dumps({"state": "ready", "done": 1, "total": 1, "message": ""}))
    assert ticks(ada) == [True, False, False, False, False]
    report_worker()
    assert ticks(ada) == [True, True, False, False, False]
    story = Story(launch(ada)).start()
    assert ticks(ada) == [True, True, True, False, False]
    story.evaluate(0, "start", "base model", 0.0)
    assert ticks(ada) == [True, True, True, True, False]
    story.step(120).finish("succeeded", "done", "Done.")
    assert read_first_steps(ada, may_launch=True).is_over


def test_the_list_stands_on_both_pages_and_goes_away(ada: User, browser: Client) -> None:
    for address in ("/", "/runs/"):
        html = browser.get(address).content.decode()
        assert "Launch your first experiment" in html
        assert "Teach SmolLM2 to add" in html
    story = Story(launch(ada)).start()
    for address in ("/", "/runs/", "/runs/first-steps/"):
        html = browser.get(address).content.decode()
        assert "Your first experiment" in html
        assert "Open #1" in html
        assert 'class="preset ' not in html
    story.step(120).finish("succeeded", "done", "Done.")
    for address in ("/", "/runs/", "/runs/first-steps/"):
        assert "first experiment" not in browser.get(address).content.decode()


def test_a_first_run_that_failed_keeps_the_list_and_says_why(ada: User, browser: Client) -> None:
    Story(launch(ada)).start().finish("failed", "bad_model", "The model was not found.")
    assert "It failed: The model was not found." in browser.get("/").content.decode()
    for _ in range(3):
        launch(ada)
    assert read_first_steps(ada, may_launch=True).is_over


def test_who_launches_nothing_is_not_led_to_it(ada: User, browser: Client) -> None:
    become(ada, Role.VIEWER)
    for address in ("/", "/runs/", "/runs/first-steps/"):
        html = browser.get(address).content.decode()
        assert "first experiment" not in html
        assert "/runs/new/" not in html
    assert "Nobody has launched one in Main" in browser.get("/runs/").content.decode()
    become(ada, None)
    for address in ("/", "/runs/"):
        assert "You are in no project yet" in browser.get(address).content.decode()


def test_runs_of_a_project_that_one_is_not_in_tick_nothing_off(ada: User, bob: User) -> None:
    other = Project.objects.create(slug="other", name="Other")
    run = launch(bob)
    Run.objects.filter(pk=run.pk).update(project=other, state="succeeded")
    steps = read_first_steps(ada, may_launch=True)
    assert not steps.is_over
    assert not steps.has_launched


def test_an_empty_project_of_somebody_experienced_offers_a_run(ada: User, browser: Client) -> None:
    Story(launch(ada)).start().finish("succeeded", "done", "Done.")
    become(ada, Role.RESEARCHER, Project.objects.create(slug="other", name="Other"))
    html = browser.get("/runs/?project=other").content.decode()
    assert "Nothing stands in Other now." in html
    assert "first experiment" not in html
    assert "No run yet" not in browser.get("/runs/").content.decode()


def finished(owner: User, minutes: float, device: str = "CPU (2 cores)", **changes: Any) -> Run:
    """A run of the tiny preset that took so long."""
    spec = TINY_COPY.spec.model_copy(update=changes)
    run = launch_run(owner=owner, spec=spec, preset=TINY_COPY.slug)
    Story(run).start().finish("succeeded", "done", "Done.")
    now = timezone.now()
    Attempt.objects.filter(run=run).update(
        started_at=now - timedelta(minutes=minutes), ended_at=now, device=device
    )
    return run


def test_without_a_run_here_the_card_says_that_it_was_measured_elsewhere(ada: User) -> None:
    timing = timing_of(ada, TINY_COPY)
    assert timing == Timing(TINY_COPY.minutes, 0, "")
    assert timing.words == "about 1 min on two processor cores"
    assert "you see no run of it here yet" in timing.source


def test_minutes_are_the_median_of_runs_here(ada: User) -> None:
    for minutes in (1.0, 9.0, 2.0):
        finished(ada, minutes)
    timing = timing_of(ada, TINY_COPY)
    assert (round(timing.minutes, 3), timing.runs) == (2.0, 3)
    assert timing.words == "about 2 min here"
    assert timing.source == "Measured here on CPU (2 cores), median of 3 runs of this preset."
    assert timing_of(ada, TEACH_SMOLLM2_TO_ADD).runs == 0


def test_seconds_are_not_called_no_minutes(ada: User) -> None:
    finished(ada, 0.02)
    assert timing_of(ada, TINY_COPY).words == "under 1 min here"


def test_another_seed_counts_and_another_spec_does_not(ada: User) -> None:
    finished(ada, 2.0, seed=7, name="Mine")
    domain = TINY_COPY.spec.domains[0].model_copy(update={"held_out_items": 7})
    finished(ada, 60.0, domains=(domain,))
    assert timing_of(ada, TINY_COPY).runs == 1


def test_only_runs_on_the_newest_device_count(ada: User) -> None:
    finished(ada, 30.0)
    finished(ada, 0.5, device="NVIDIA H200")
    timing = timing_of(ada, TINY_COPY)
    assert (timing.device, round(timing.minutes, 3), timing.runs) == ("NVIDIA H200", 0.5, 1)


def test_runs_that_were_interrupted_or_failed_do_not_count(ada: User) -> None:
    run = finished(ada, 2.0)
    Run.objects.filter(pk=run.pk).update(attempt=2)
    Story(launch(ada)).start().finish("failed", "bad_model", "No.")
    assert timing_of(ada, TINY_COPY).runs == 0


def test_runs_of_other_projects_are_not_measured(ada: User, bob: User, browser: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    Run.objects.filter(pk=finished(bob, 44.0, device="Hidden device").pk).update(project=other)
    assert timing_of(ada, TINY_COPY).runs == 0
    page = browser.get("/runs/new/?preset=tiny-model").content.decode()
    assert "44 min" not in page
    assert "Hidden device" not in page
    become(ada, Role.VIEWER, other)
    assert timing_of(ada, TINY_COPY).device == "Hidden device"


def test_every_preset_has_a_card_that_says_what_one_will_see(ada: User, browser: Client) -> None:
    html = browser.get("/runs/new/").content.decode()
    for card in preset_cards(ada):
        assert card.preset.title in html
        assert card.timing.words in html
        assert card.preset.expect in html
