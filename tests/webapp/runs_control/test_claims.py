from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from webapp.accounts.models import User
from webapp.control.claims import (
    Claim,
    LeaseLost,
    claim_run,
    commands_sent,
    heartbeat,
    read_orders,
)
from webapp.control.directories import append_commands, prepare_directory
from webapp.runs import services
from webapp.runs.models import Attempt, ControlRequest, Run


def expire(run: Run, ago: timedelta = timedelta(seconds=1)) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - ago)


def test_a_claim_opens_an_attempt(run: Run, claim: Claim) -> None:
    run.refresh_from_db()
    attempt = Attempt.objects.get(run=run)
    assert (run.state, run.attempt, run.lease_owner) == ("starting", 1, "train@one")
    assert (attempt.number, attempt.worker, attempt.boot) == (1, "train@one", "boot-1")
    assert run.started_at is not None
    assert claim.token == run.fencing_token


def test_a_second_delivery_finds_nothing_to_claim(run: Run, claim: Claim) -> None:
    assert claim_run(run.pk, "train@two", "boot-2") is None
    assert Attempt.objects.filter(run=run).count() == 1


def test_a_run_that_is_gone_cannot_be_claimed(run: Run, alice: User) -> None:
    services.stop_run(run, alice)
    services.delete_run(run, alice)
    assert claim_run(run.pk, "train@two", "boot-2") is None


def test_a_spec_of_an_unknown_form_fails_the_run(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(spec={"name": "from the future"})
    assert claim_run(run.pk, "train@one", "boot-1") is None
    run.refresh_from_db()
    assert (run.state, run.cause) == ("failed", "bad_spec")


def test_tokens_grow_and_an_old_one_is_worth_nothing(run: Run, claim: Claim, alice: User) -> None:
    Run.objects.filter(pk=run.pk).update(state="queued", lease_owner="")
    newer = claim_run(run.pk, "train@two", "boot-2")
    assert newer is not None
    assert newer.token > claim.token
    with pytest.raises(LeaseLost):
        heartbeat(claim)
    with pytest.raises(LeaseLost):
        read_orders(claim)
    assert heartbeat(newer).state == "starting"


def test_a_heartbeat_renews_the_lease(run: Run, claim: Claim) -> None:
    expire(run)
    heartbeat(claim)
    assert Run.objects.filter(pk=run.pk, lease_until__gt=Now() + timedelta(seconds=25)).exists()


def test_a_late_heartbeat_revives_a_lost_run(run: Run, claim: Claim) -> None:
    Run.objects.filter(pk=run.pk).update(state="lost")
    assert heartbeat(claim).state == "running"
    run.refresh_from_db()
    assert (run.state, run.cause) == ("running", "revived")


def test_a_heartbeat_for_a_run_that_was_stopped_meanwhile_is_refused(
    run: Run, claim: Claim, alice: User
) -> None:
    Run.objects.filter(pk=run.pk).update(state="lost")
    services.stop_run(run, alice)
    with pytest.raises(LeaseLost, match="stopped"):
        heartbeat(claim)


def test_wishes_reach_the_control_file_once(run: Run, claim: Claim, alice: User) -> None:
    prepare_directory(claim)
    services.checkpoint_now(run, alice)
    services.stop_run(run, alice)
    orders = heartbeat(claim)
    assert orders.state == "stopping"
    assert [(c.command, c.attempt, c.actor) for c in orders.commands] == [
        ("checkpoint_now", 1, "alice"),
        ("stop", 1, "alice"),
    ]
    append_commands(claim.run_dir, orders.commands)
    commands_sent(claim, orders.commands)
    assert read_orders(claim).commands == ()
    assert [c.command for c in claim.run_dir.read_control()] == ["checkpoint_now", "stop"]
    assert not ControlRequest.objects.filter(sent_at=None).exists()


def test_an_attempt_sees_no_wishes_of_another(run: Run, claim: Claim, alice: User) -> None:
    services.checkpoint_now(run, alice)
    later = replace(claim, attempt=2)
    assert read_orders(later).commands == ()


def test_the_next_attempt_gets_what_was_not_done(run: Run, claim: Claim, alice: User) -> None:
    Run.objects.filter(pk=run.pk).update(state="running")
    for ask in (services.checkpoint_now, services.evaluate_now, services.pause_run):
        ask(Run.objects.get(pk=run.pk), alice)
    asked = read_orders(claim).commands
    assert {c.command for c in asked} == {"checkpoint_now", "evaluate_now", "pause"}
    commands_sent(claim, asked)
    ControlRequest.objects.filter(command="checkpoint_now").update(applied_at=timezone.now())
    Run.objects.filter(pk=run.pk).update(state="queued")
    again = claim_run(run.pk, "two", "boot-2")
    assert again is not None
    assert [c.command for c in read_orders(again).commands] == ["evaluate_now"]


def test_the_directory_holds_spec_and_owner(claim: Claim) -> None:
    assert prepare_directory(claim) is None
    assert claim.run_dir.read_spec() == claim.spec
    assert claim.run_dir.read_owner() == (1, claim.token)
