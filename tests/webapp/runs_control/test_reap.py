from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from tests.webapp.runs_control.story import Story
from webapp.accounts.models import User
from webapp.control import reap as reaping
from webapp.control.claims import Claim, LeaseLost, claim_run, heartbeat
from webapp.control.finish import finish_attempt
from webapp.control.reap import disown_predecessor, reap, send_waiting_runs
from webapp.control.verdicts import Verdict
from webapp.metrics.read import read_series
from webapp.runs import services
from webapp.runs.models import Attempt, Run
from webapp.workers_page.models import Worker
from webapp.workers_page.services import WorkerFacts, free_slots, worker_gone, worker_seen

CRASH = Verdict("failed", "exception", "It broke.", retryable=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Ids that were given to the broker."""
    ids: list[object] = []
    monkeypatch.setattr("webapp.runs.dispatch.send_task", lambda _, pk: ids.append(pk) or True)
    return ids


def facts(name: str = "train@one", boot: str = "boot-1", slots: int = 1) -> WorkerFacts:
    now = timezone.now()
    return WorkerFacts(name, boot, "host", 1, ("train",), slots, (), {}, now, now)


def expire(run: Run, seconds: float) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=seconds))


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_a_run_with_a_fresh_lease_is_left_alone(run: Run, claim: Claim) -> None:
    reap()
    assert fresh(run).state == "starting"


def test_a_silent_worker_loses_its_run_which_can_be_revived(run: Run, claim: Claim) -> None:
    expire(run, 1)
    reap()
    assert fresh(run).state == "lost"
    assert "train@one has not been heard of" in fresh(run).message
    reap()
    assert fresh(run).state == "lost"
    heartbeat(claim)
    assert fresh(run).state == "running"


def test_a_lost_run_is_queued_again_and_the_old_claim_is_dead(run: Run, claim: Claim) -> None:
    expire(run, 1)
    reap()
    expire(run, 60)
    reap()
    assert (fresh(run).state, fresh(run).cause) == ("queued", "worker_lost")
    attempt = Attempt.objects.get(run=run)
    assert (attempt.outcome, attempt.cause) == ("failed", "worker_lost")
    with pytest.raises(LeaseLost):
        heartbeat(claim)
    with pytest.raises(LeaseLost):
        finish_attempt(claim, CRASH)


def test_what_the_dead_worker_left_is_indexed_first(run: Run, story: Story) -> None:
    story.started()
    for step in (1, 2):
        story.metrics(step)
    expire(run, 1)
    reap()
    assert read_series(run.pk, "reward") == [(1, 0.1), (2, 0.2)]
    story.checkpoint(2)  # the trainer of a cut off worker trains on
    expire(run, 60)
    reap()
    assert read_series(run.pk, "reward") == [(1, 0.1), (2, 0.2)]
    assert fresh(run).idle_attempts == 0
    assert fresh(run).message.endswith("It goes on from step 2.")


def test_a_trainer_that_ended_well_is_believed_though_its_worker_died(
    run: Run, story: Story
) -> None:
    story.started()
    story.finished(12)
    expire(run, 60)
    reap()
    reap()
    assert fresh(run).state == "succeeded"


def test_a_run_that_loses_every_worker_is_given_up(run: Run) -> None:
    for attempt in (1, 2, 3):
        assert claim_run(run.pk, "train@one", f"boot-{attempt}") is not None
        expire(run, 60)
        reap()
        reap()
    assert (fresh(run).state, fresh(run).cause) == ("failed", "worker_lost")
    assert "Given up after 3 attempts" in fresh(run).message


@pytest.mark.parametrize(("wish", "end"), [("stop_run", "stopped"), ("pause_run", "paused")])
def test_a_wish_comes_true_though_the_worker_died(
    run: Run, claim: Claim, alice: User, wish: str, end: str
) -> None:
    getattr(services, wish)(run, alice)
    expire(run, 1)
    reap()
    assert fresh(run).state == end
    assert Attempt.objects.get(run=run).ended_at is not None


def test_a_worker_that_starts_anew_frees_what_it_had(run: Run, claim: Claim) -> None:
    disown_predecessor("train@one", "boot-1")
    assert fresh(run).state == "starting"
    disown_predecessor("train@two", "boot-9")
    assert fresh(run).state == "starting"
    disown_predecessor("train@one", "boot-2")
    assert fresh(run).state == "queued"


def test_a_finished_run_of_a_former_start_is_left_alone(run: Run, claim: Claim) -> None:
    finish_attempt(claim, Verdict("succeeded", "done", "Done."))
    disown_predecessor("train@one", "boot-2")
    assert fresh(run).state == "succeeded"


def test_a_run_stopped_while_lost_has_its_attempt_closed(
    run: Run, claim: Claim, alice: User
) -> None:
    expire(run, 1)
    reap()
    services.stop_run(run, alice)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=Now() - timedelta(minutes=5))
    reap()
    assert fresh(run).state == "stopped"
    assert Attempt.objects.get(run=run).ended_at is not None


def test_a_queued_run_is_sent_again_when_a_worker_is_free(run: Run, sent: list[object]) -> None:
    worker_seen(facts())
    assert send_waiting_runs() == 0  # it was queued just now
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(seconds=5))
    assert send_waiting_runs() == 1
    assert send_waiting_runs() == 0  # its message is fresh
    Run.objects.filter(pk=run.pk).update(sent_at=timezone.now() - timedelta(minutes=1))
    assert send_waiting_runs() == 1
    assert sent == [run.pk, run.pk]


def test_messages_do_not_pile_up_while_all_slots_are_taken(
    run: Run, claim: Claim, alice: User, sent: list[object]
) -> None:
    Run.objects.filter(pk=run.pk).update(name="busy")
    waiting = services.launch_run(owner=alice, spec=claim.spec)
    Run.objects.filter(pk=waiting.pk).update(queued_at=timezone.now() - timedelta(minutes=5))
    assert send_waiting_runs() == 0  # no worker is known
    worker_seen(facts())
    assert send_waiting_runs() == 0  # its slot is taken
    worker_seen(facts("train@two"))
    assert send_waiting_runs() == 1
    assert sent == [waiting.pk]


def test_a_crashing_run_waits_before_it_is_sent_again(
    run: Run, claim: Claim, sent: list[object]
) -> None:
    worker_seen(facts())
    Run.objects.filter(pk=run.pk).update(idle_attempts=1)
    finish_attempt(claim, CRASH)
    assert (fresh(run).state, fresh(run).idle_attempts) == ("queued", 2)
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(seconds=4))
    assert send_waiting_runs() == 0
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(seconds=6))
    assert send_waiting_runs() == 1


@pytest.mark.django_db
def test_only_workers_that_hear_have_free_slots() -> None:
    now = timezone.now()
    worker_seen(facts("train@a", slots=2))
    worker_seen(facts("train@deaf"))
    worker_seen(facts("train@silent"))
    worker_seen(facts("train@gone"))
    worker_seen(facts("cpu@a"))
    Worker.objects.filter(name="train@deaf").update(consuming_at=now - timedelta(minutes=5))
    Worker.objects.filter(name="train@silent").update(seen_at=now - timedelta(minutes=5))
    Worker.objects.filter(name="cpu@a").update(queues=["cpu"])
    worker_gone("train@gone", "boot-1")
    assert free_slots("train") == 2
    assert free_slots("cpu") == 1


@pytest.mark.django_db
def test_a_goodbye_of_a_former_start_is_not_the_workers() -> None:
    worker_seen(facts(boot="new"))
    worker_gone("train@one", "old")
    assert Worker.objects.get().is_alive


def test_two_reapers_at_once_requeue_once(run: Run, claim: Claim) -> None:
    expire(run, 60)
    reap()
    reaping.requeue_lost(run.pk)
    reaping.requeue_lost(run.pk)
    assert fresh(run).state == "queued"
    assert fresh(run).idle_attempts == 1
