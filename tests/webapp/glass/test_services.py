"""Rows of steps under glass: who may move them, once, and what happens to those left behind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.webapp.glass.steps import WORKER, ask, claim, finish, make_result, step_of
from training_core.contract.glass import GlassEnd, OwnPrompt
from webapp import lifecycle
from webapp.accounts.models import Project, User
from webapp.audit.models import AuditEntry
from webapp.glass.claims import requeue_silent_glass
from webapp.glass.models import GlassStep
from webapp.glass.services import ask_for_step, cancel_step, delete_step, prune_glass
from webapp.glass.subjects import base_subjects
from webapp.metrics.models import LiveEvent
from webapp.workers_page.overview import read_workers
from webapp.workers_page.services import WorkerFacts, free_slots, worker_seen

pytestmark = pytest.mark.django_db
DONE = GlassEnd(outcome="done", cause="done", message="Done.")


@pytest.fixture
def step(ada: User) -> GlassStep:
    return ask(ada)


def report_worker(name: str = WORKER) -> None:
    worker_seen(
        WorkerFacts(
            name=name,
            boot="boot",
            host="host-a",
            pid=1,
            queues=("train",),
            slots=1,
            devices=("2 CPU cores",),
            versions={},
            started_at=timezone.now(),
            consuming_at=timezone.now(),
        )
    )


def test_a_step_is_sent_once_it_is_committed(
    ada: User, sent: list[object], django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        step = ask(ada)
        assert sent == []
    assert sent == [step.pk]
    assert step_of(step.pk).sent_at is not None


def test_the_same_key_gives_the_same_step(ada: User, bob: User, step: GlassStep) -> None:
    subject, main = base_subjects()[1], Project.objects.main()
    spec = step.read_spec()
    first = ask_for_step(ada, main, subject, spec, "key-1")
    assert ask_for_step(ada, main, subject, spec, "key-1") == first
    assert ask_for_step(bob, main, subject, spec, "key-1") != first
    assert ask_for_step(ada, main, subject, spec, "key-2") != first


def test_another_wish_under_an_old_key_is_another_step(ada: User, step: GlassStep) -> None:
    """The browser's Back button brings the form with the key that it had."""
    subject, main = base_subjects()[1], Project.objects.main()
    spec = step.read_spec()
    first = ask_for_step(ada, main, subject, spec, "key-1")
    warmer = spec.model_copy(update={"seed": spec.seed + 1})
    assert ask_for_step(ada, main, subject, warmer, "key-1") != first


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_asking_again_after_a_failure_takes_a_new_step(
    ada: User, step: GlassStep, state: str
) -> None:
    subject, main, spec = base_subjects()[1], Project.objects.main(), step.read_spec()
    first = ask_for_step(ada, main, subject, spec, "key-1")
    GlassStep.objects.filter(pk=first.pk).update(state=state)
    again = ask_for_step(ada, main, subject, spec, "key-1")
    assert (again != first, again.state) == (True, "waiting")


def test_of_two_deliveries_one_gets_the_step(step: GlassStep) -> None:
    held = claim(step)
    assert lifecycle.claim_glass(step.pk, "train@two") is None
    assert (held.attempt, step.worker, step.state) == (1, WORKER, "running")
    assert held.run_dir is None
    assert held.spec.stage.group_size == 4


def test_a_finished_step_has_a_summary(step: GlassStep) -> None:
    finish(step)
    assert step.state == "done"
    assert step.summary["is_dead"] is False
    assert step.summary["reward_mean"] == pytest.approx(0.325)


def test_numbers_that_are_not_finite_reach_the_row(step: GlassStep) -> None:
    finish(step, make_result(grad_norm=float("nan"), loss=float("inf")))
    assert step.summary["grad_norm"] == "NaN"


def test_a_result_that_cannot_be_read_is_a_failure(step: GlassStep) -> None:
    held = claim(step)
    held.directory.result_file.write_text("{")
    assert lifecycle.finish_glass(held, DONE)
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "bad_result")


def test_a_waiting_step_is_cancelled_at_once(step: GlassStep, ada: User) -> None:
    assert cancel_step(step, ada)
    assert step.state == "cancelled"
    assert lifecycle.claim_glass(step.pk, WORKER) is None
    assert not cancel_step(step, ada)


def test_a_running_step_is_cancelled_by_its_worker(step: GlassStep, ada: User) -> None:
    held = claim(step)
    assert lifecycle.tend_glass(held) == "go"
    assert cancel_step(step, ada)
    assert step.state == "running"
    assert lifecycle.tend_glass(held) == "cancelled"
    assert lifecycle.cancel_claimed_glass(held)
    assert step_of(step.pk).state == "cancelled"


def test_a_step_of_a_silent_worker_waits_again_and_its_old_worker_says_nothing(
    step: GlassStep, sent: list[object]
) -> None:
    held = claim(step)
    requeue_silent_glass(1)
    assert step_of(step.pk).state == "running"
    GlassStep.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    assert requeue_silent_glass(1) == 1
    assert (step_of(step.pk).state, sent) == ("waiting", [step.pk])
    again = claim(step)
    assert lifecycle.tend_glass(held) == "lost"
    assert not lifecycle.finish_glass(held, GlassEnd(outcome="failed", cause="x", message="x"))
    assert not lifecycle.release_glass(held)
    assert lifecycle.tend_glass(again) == "go"


def test_a_cancelled_step_of_a_silent_worker_is_over(step: GlassStep, ada: User) -> None:
    claim(step)
    cancel_step(step, ada)
    GlassStep.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    requeue_silent_glass(1)
    assert step_of(step.pk).state == "cancelled"


def test_a_step_that_loses_two_workers_is_given_up(step: GlassStep) -> None:
    for _ in range(2):
        claim(step)
        GlassStep.objects.update(seen_at=timezone.now() - timedelta(minutes=1))
        requeue_silent_glass(0)
    assert lifecycle.claim_glass(step.pk, WORKER) is None
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "worker_lost")
    assert row.advice


def test_a_worker_that_shuts_down_does_not_count(step: GlassStep) -> None:
    for _ in range(5):
        assert lifecycle.release_glass(claim(step))
    assert claim(step).attempt == 1


def test_messages_are_sent_again_only_where_a_slot_is_free(
    step: GlassStep, sent: list[object]
) -> None:
    assert requeue_silent_glass(0) == 0
    assert sent == []
    assert requeue_silent_glass(2) == 1
    assert requeue_silent_glass(2) == 0, "it was sent a moment ago"


def test_a_step_takes_a_slot(step: GlassStep, ada: User) -> None:
    report_worker()
    assert free_slots("train") == 1
    claim(step)
    assert free_slots("train") == 0
    view = read_workers(ada)
    assert [(each.state, each.words) for each in view.workers] == [
        ("busy", "Takes a step under glass.")
    ]
    assert view.queues[0].busy == 1
    lifecycle.reap()
    assert step_of(step.pk).state == "running"


def test_a_stored_spec_that_is_unknown_is_refused_with_a_sentence(step: GlassStep) -> None:
    GlassStep.objects.update(spec={"spec_version": 9})
    assert lifecycle.claim_glass(step.pk, WORKER) is None
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "bad_spec")
    assert "spec_version" in row.message


def test_deleting_takes_the_files_along(
    step: GlassStep, django_capture_on_commit_callbacks: object
) -> None:
    assert not delete_step(step), "it waits"
    folder: Path = finish(step).directory.root
    assert folder.is_dir()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        assert delete_step(step)
    assert list(folder.parent.iterdir()) == []
    assert not GlassStep.objects.exists()


def test_deeds_of_people_are_noted_once_and_those_of_the_spring_clean_are_not(
    step: GlassStep, ada: User, bob: User
) -> None:
    cancel_step(step, bob)
    cancel_step(step, bob)
    delete_step(step, bob)
    finish(ask(ada))
    GlassStep.objects.update(finished_at=timezone.now() - timedelta(days=31))
    assert prune_glass() == 1
    entries = AuditEntry.objects.filter(action__startswith="glass.").order_by("pk")
    assert list(entries.values_list("action", "actor", "label")) == [
        ("glass.ask", "ada", "tiny"),
        ("glass.cancel", "bob", "tiny"),
        ("glass.delete", "bob", "tiny"),
        ("glass.ask", "ada", "tiny"),
    ]
    assert {entry.project_key for entry in entries} == {Project.objects.main().pk}


def test_old_steps_are_cleaned_up_and_young_ones_stay(ada: User) -> None:
    old, young, waiting = finish(ask(ada)), finish(ask(ada)), ask(ada)
    month = timezone.now() - timedelta(days=31)
    GlassStep.objects.filter(pk=old.pk).update(finished_at=month)
    GlassStep.objects.filter(pk=waiting.pk).update(created_at=month)
    assert prune_glass() == 1
    assert set(GlassStep.objects.all()) == {young, waiting}


def test_every_move_is_told_to_the_pages_of_the_project(step: GlassStep) -> None:
    finish(step)
    topics = LiveEvent.objects.filter(kind="glass").order_by("pk").values_list("topic", "data")
    assert [data["state"] for _, data in topics] == ["waiting", "running", "done"]
    assert {topic for topic, _ in topics} == {f"glass@{step.project_id}"}


def test_ones_own_prompt_stands_in_the_spec(ada: User) -> None:
    own = {"kind": "own", "question": "7 + 8 = ?", "answer": "15", "system": "Be brief."}
    prompt = ask(ada, **own).read_spec().prompt
    assert isinstance(prompt, OwnPrompt)
    assert [(turn.role, turn.content) for turn in prompt.messages] == [
        ("system", "Be brief."),
        ("user", "7 + 8 = ?"),
    ]
    assert prompt.answer == "15"
