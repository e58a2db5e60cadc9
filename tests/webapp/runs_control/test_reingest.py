"""The run directory is the truth: rows built from it anew equal the rows of live ingestion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from tests.webapp.runs_control.index import index_of
from tests.webapp.runs_control.story import Story, tell_six_steps
from webapp.accounts.models import User
from webapp.control.claims import Claim, claim_run
from webapp.control.directories import prepare_directory
from webapp.control.finish import finish_attempt
from webapp.control.reingest import reingest
from webapp.control.verdicts import Verdict
from webapp.evaluation.models import EvalRun
from webapp.metrics.models import MetricSeries
from webapp.metrics.read import read_series
from webapp.rollouts.models import RolloutGroup
from webapp.runs.models import (
    Attempt,
    Checkpoint,
    Run,
    RunNotice,
)

Ingest = Callable[[Story, Run], bool]


@pytest.fixture
def lived(run: Run, claim: Claim, story: Story, ingest: Ingest) -> Run:
    """A run with a killed attempt, a resumed one, and an end."""
    prepare_directory(claim)
    tell_six_steps(story)
    ingest(story, run)
    finish_attempt(claim, Verdict("failed", "killed", "Ended by SIGKILL.", retryable=True))
    second = claim_run(run.pk, "train@two", "boot-2")
    assert second is not None
    prepare_directory(second)
    more = Story(second.run_dir, 2)
    more.started(4)
    for step in range(5, 13):
        more.metrics(step, entropy=float("nan"))
        more.rollouts(step)
    more.checkpoint(12, removed=(4,), best=True)
    more.evaluation(12, label="final")
    more.finished(12)
    ingest(more, run)
    finish_attempt(second, Verdict("failed", "vanished", "It ended."))
    return Run.objects.get(pk=run.pk)


def test_the_rows_are_the_same(lived: Run) -> None:
    before = index_of(lived)
    assert lived.state == "succeeded"
    assert before["series"]["reward"].startswith("[(1, 0.1), (2, 0.2)")
    assert reingest(lived.pk) == 2
    after = index_of(lived)
    for table in before:
        assert after[table] == before[table], table


def test_the_rows_come_back_when_they_are_gone(lived: Run) -> None:
    before = index_of(lived)
    for model in (RunNotice, EvalRun, RolloutGroup, MetricSeries):
        model.objects.filter(run=lived).delete()
    Attempt.objects.filter(run=lived).update(outcome="", last_step=0, ended_at=None)
    Run.objects.filter(pk=lived.pk).update(step=0, latest={}, stage="")
    reingest(lived.pk)
    after = index_of(lived)
    for table in before:
        assert after[table] == before[table], table


def test_a_live_run_can_be_read_anew_and_goes_on(run: Run, story: Story, ingest: Ingest) -> None:
    tell_six_steps(story)
    ingest(story, run)
    before = index_of(run)
    reingest(run.pk)
    assert index_of(run) == before
    story.metrics(7)
    ingest(story, run)
    assert len(read_series(run.pk, "reward")) == 7


def test_forks_keep_their_parent_checkpoint(lived: Run, alice: User) -> None:
    checkpoint = Checkpoint.objects.get(run=lived, step=12)
    child = Run.objects.create(
        number=99,
        name="fork",
        owner=alice,
        spec=lived.spec,
        spec_version=1,
        total_steps=20,
        parent=lived,
        parent_checkpoint=checkpoint,
    )
    reingest(lived.pk)
    child.refresh_from_db()
    assert child.parent_checkpoint == checkpoint


def test_the_command_names_what_it_read(lived: Run, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("reingest", str(lived.number))
    assert f"Run #{lived.number}: 2 attempts read" in capsys.readouterr().out


@pytest.mark.django_db
def test_the_command_refuses_what_is_not_there(run: Run) -> None:
    with pytest.raises(CommandError, match="There is no run #77"):
        call_command("reingest", "77")
    with pytest.raises(CommandError, match="has no directory"):
        call_command("reingest", str(run.number))
