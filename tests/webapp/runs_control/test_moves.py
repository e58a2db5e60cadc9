from __future__ import annotations

import pytest
from django.db import transaction

from webapp.metrics import live
from webapp.metrics.models import LiveEvent
from webapp.runs.models import Run, RunEvent
from webapp.runs.moves import IllegalMove, MoveLost, move
from webapp.runs.status import Actor, RunState


def test_a_move_writes_state_event_and_hint(run: Run) -> None:
    LiveEvent.objects.all().delete()
    move(run, RunState.STOPPED, actor=Actor.PERSON, who="alice", cause="user", message="Enough.")
    run.refresh_from_db()
    event = RunEvent.objects.filter(run=run).last()
    assert (run.state, run.cause, run.message) == ("stopped", "user", "Enough.")
    assert run.finished_at is not None
    assert event is not None
    assert (event.from_state, event.to_state, event.actor) == ("queued", "stopped", "alice")
    assert {hint.topic for hint in LiveEvent.objects.all()} == {
        f"run:{run.pk}",
        live.project_topic("runs", run.project_id),
    }


def test_a_move_that_the_table_lacks_is_refused(run: Run) -> None:
    with pytest.raises(IllegalMove):
        move(run, RunState.RUNNING, actor=Actor.WORKER, who="w", cause="x")


def test_a_move_by_the_wrong_actor_is_refused(run: Run) -> None:
    with pytest.raises(IllegalMove):
        move(run, RunState.STOPPED, actor=Actor.WORKER, who="w", cause="x")


def test_of_two_movers_one_loses_and_nothing_of_its_move_stays(run: Run) -> None:
    stale = Run.objects.get(pk=run.pk)
    move(run, RunState.PAUSED, actor=Actor.PERSON, who="alice", cause="user")
    with pytest.raises(MoveLost):
        move(stale, RunState.STOPPED, actor=Actor.PERSON, who="bob", cause="user")
    run.refresh_from_db()
    assert run.state == "paused"
    assert not RunEvent.objects.filter(run=run, actor="bob").exists()


def test_a_move_of_a_failed_transaction_leaves_no_event(run: Run) -> None:
    with transaction.atomic():
        move(run, RunState.STOPPED, actor=Actor.PERSON, who="alice", cause="user")
        transaction.set_rollback(True)
    run.refresh_from_db()
    assert run.state == "queued"
    assert not RunEvent.objects.filter(run=run, to_state="stopped").exists()
