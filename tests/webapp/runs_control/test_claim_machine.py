"""Whatever order deliveries, kills, silences, wishes and reapings come in, one trainer has a run.

The machine plays workers that claim, beat, die, fall silent and end; `holders` are the trainers
that are really at work. A trainer that learns of its lost lease ends. The clock is the lease
column: an expiry is written into it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.webapp.runs_control.story import Story
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import User
from webapp.control.batches import read_batch
from webapp.control.claims import Claim, LeaseLost, claim_run, heartbeat
from webapp.control.finish import finish_attempt
from webapp.control.reap import LOST_GRACE, disown_predecessor, reap
from webapp.control.record import record_events
from webapp.control.verdicts import Verdict
from webapp.runs import services
from webapp.runs.models import Attempt, Run, RunCounter, RunEvent
from webapp.runs.refusals import ControlRefused
from webapp.runs.status import RESUMABLE, TERMINAL, Actor, RunState, find_move

VERDICTS = (
    Verdict("succeeded", "done", "Done."),
    Verdict("stopped", "user", "Stopped."),
    Verdict("paused", "user", "Paused."),
    Verdict("shutdown", "shutdown", "Handed back."),
    Verdict("failed", "exception", "It broke.", retryable=True),
    Verdict("failed", "out_of_memory", "Too big.", retryable=True),
)


class ClaimMachine(RuleBasedStateMachine):
    """One run, two worker names, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.alice, _ = User.objects.get_or_create(username="alice")
        spec = TINY_COPY.spec
        self.run = Run.objects.create(
            number=RunCounter.take_next(),
            name=spec.name,
            owner=self.alice,
            spec=spec.model_dump(mode="json"),
            spec_version=1,
            total_steps=spec.total_steps,
        )
        services._move(self.run, RunState.QUEUED, self.alice, "launched", "")
        self.boots = {"train@one": 0, "train@two": 0}
        self.claims: list[Claim] = []
        self.holders: dict[int, tuple[Claim, Story]] = {}
        self.events_seen = 0
        self.tokens: list[int] = []

    def state(self) -> RunState:
        return RunState(Run.objects.values_list("state", flat=True).get(pk=self.run.pk))

    def is_rightful(self, claim: Claim) -> bool:
        """Whether the claim still gives a right to the run."""
        run = Run.objects.get(pk=self.run.pk)
        return run.fencing_token == claim.token and (run.is_live or run.state == RunState.LOST)

    @initialize(has_started=st.booleans())
    def begin(self, has_started: bool) -> None:
        """Most of what can go wrong needs a trainer at work."""
        self.deliver("train@one")
        if has_started:
            claim, story = self.holders[1]
            story.started()
            record_events(claim.run_id, 1, read_batch(story.path, 0))

    @rule(worker=st.sampled_from(["train@one", "train@two"]))
    def deliver(self, worker: str) -> None:
        """A message arrives, wanted or not."""
        before = self.state()
        claim = claim_run(self.run.pk, worker, f"{worker}-{self.boots[worker]}")
        assert (claim is not None) == (before is RunState.QUEUED)
        if claim is not None:
            self.tokens.append(claim.token)
            self.holders[claim.attempt] = (claim, Story(claim.run_dir, claim.attempt))

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        """A heartbeat, in time or late."""
        attempt = data.draw(st.sampled_from(sorted(self.holders)))
        claim, _ = self.holders[attempt]
        is_mine = self.is_rightful(claim)
        try:
            heartbeat(claim)
        except LeaseLost:
            del self.holders[attempt]
            assert not is_mine
        else:
            assert is_mine

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def train(self, data: st.DataObject) -> None:
        """The trainer says that it is up, or that it saved."""
        attempt = data.draw(st.sampled_from(sorted(self.holders)))
        _, story = self.holders[attempt]
        if story.seq == 0:
            story.started()
        else:
            story.checkpoint(story.seq)
        record_events(self.run.pk, attempt, read_batch(story.path, 0))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), verdict=st.sampled_from(VERDICTS))
    def end(self, data: st.DataObject, verdict: Verdict) -> None:
        """A trainer ends, and its supervisor says how."""
        attempt = data.draw(st.sampled_from(sorted(self.holders)))
        claim, _ = self.holders.pop(attempt)
        is_mine = self.is_rightful(claim)
        try:
            finish_attempt(claim, verdict)
        except LeaseLost:
            assert not is_mine
        else:
            assert is_mine
            assert not Run.objects.get(pk=self.run.pk).is_live

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def kill_worker(self, data: st.DataObject) -> None:
        """kill -9: the trainer goes with it, and it starts anew under its name."""
        attempt = data.draw(st.sampled_from(sorted(self.holders)))
        worker = self.holders[attempt][0].worker
        self.holders = {k: v for k, v in self.holders.items() if v[0].worker != worker}
        self.boots[worker] += 1
        disown_predecessor(worker, f"{worker}-{self.boots[worker]}")

    @precondition(lambda self: self.holders)
    @rule(is_long=st.booleans())
    def fall_silent(self, is_long: bool) -> None:
        """Nobody is heard of until the lease has run out, perhaps beyond all grace."""
        ago = LOST_GRACE * 2 if is_long else timedelta(seconds=1)
        Run.objects.filter(pk=self.run.pk).exclude(lease_until=None).update(lease_until=Now() - ago)
        reap()

    @rule(wish=st.sampled_from([services.stop_run, services.pause_run]))
    def person(self, wish: Callable[[Run, User], Run]) -> None:
        """Somebody wants it to end, and who paused or stopped it may want it back."""
        try:
            if self.state() in RESUMABLE:
                services.resume_run(self.run, self.alice)
            else:
                wish(self.run, self.alice)
        except ControlRefused:
            assert self.state() in {RunState.SUCCEEDED, RunState.STOPPING, RunState.PAUSING}

    @invariant()
    def one_attempt_at_most_may_write(self) -> None:
        """Only the newest attempt's token is good, however many trainers still run."""
        run = Run.objects.get(pk=self.run.pk)
        valid = [a for a, (c, _) in self.holders.items() if c.token == run.fencing_token]
        assert len(valid) <= 1
        assert all(attempt == run.attempt for attempt in valid)
        assert Attempt.objects.filter(run=run, ended_at=None).count() <= 1

    @invariant()
    def tokens_only_grow(self) -> None:
        assert self.tokens == sorted(set(self.tokens))

    @invariant()
    def every_move_is_in_the_table(self) -> None:
        """Read from the log of control, which no move can avoid; terminal states stay terminal."""
        events = RunEvent.objects.filter(run=self.run, kind="state")
        for event in events[self.events_seen :]:
            move = find_move(RunState(event.from_state), RunState(event.to_state))
            assert move is not None
            if move.source in TERMINAL:
                assert event.actor == "alice"
            if event.actor == "reaper":
                assert Actor.REAPER in move.actors
        self.events_seen = events.count()

    @invariant()
    def the_log_is_a_path(self) -> None:
        """Each move starts where the one before ended, and the last one is where the run is."""
        events = list(RunEvent.objects.filter(run=self.run, kind="state"))
        ends = [event.to_state for event in events]
        assert [event.from_state for event in events[1:]] == ends[:-1]
        assert ends[-1] == self.state()


@pytest.mark.django_db
class TestClaims(ClaimMachine.TestCase, TestCase):  # type: ignore[name-defined,misc]
    """The machine in rolled back transactions."""

    settings = settings(
        max_examples=20,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
