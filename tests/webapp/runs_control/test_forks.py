from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.webapp.runs_control.story import Story, tell_six_steps
from training_core.contract.spec import ModelSpec, RunSpec
from webapp.accounts.models import User
from webapp.control.claims import Claim
from webapp.control.finish import finish_attempt
from webapp.control.verdicts import Verdict
from webapp.metrics.models import LiveEvent, MetricSeries
from webapp.rollouts.models import RolloutGroup
from webapp.runs import services
from webapp.runs.models import Checkpoint, Run
from webapp.runs.refusals import LaunchRefused


@pytest.fixture
def saved(run: Run, claim: Claim, story: Story, ingest: Callable[[Story, Run], bool]) -> Checkpoint:
    """The checkpoint after step 4 of a run that has succeeded."""
    tell_six_steps(story)
    ingest(story, run)
    finish_attempt(claim, Verdict("succeeded", "done", "Done."))
    return Checkpoint.objects.get(run=run, step=4)


def longer(spec: RunSpec, steps: int = 20) -> RunSpec:
    warm_up, rl = spec.stages
    return spec.model_copy(update={"stages": (warm_up, rl.model_copy(update={"steps": steps}))})


def test_a_fork_starts_with_the_checkpoint_of_its_parent(
    saved: Checkpoint, bob: User, spec: RunSpec
) -> None:
    child = services.restart_from(saved, bob, longer(spec))
    assert (child.state, child.parent, child.parent_checkpoint) == ("queued", saved.run, saved)
    assert child.step == 4
    assert child.run_dir.checkpoint(4).joinpath("manifest.json").read_text() == "{}"


def test_a_fork_survives_its_parent(
    saved: Checkpoint,
    alice: User,
    spec: RunSpec,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    child = services.restart_from(saved, alice, longer(spec))
    parent = saved.run
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        services.delete_run(parent, alice)
    assert not parent.directory.exists()
    assert not Run.objects.filter(number=parent.number).exists()
    assert not MetricSeries.objects.filter(run_id=parent.pk).exists()
    assert not RolloutGroup.objects.filter(run_id=parent.pk).exists()
    assert LiveEvent.objects.filter(topic__startswith="runs@", data__state="deleted").exists()
    child.refresh_from_db()
    assert (child.parent, child.parent_checkpoint) == (None, None)
    assert child.run_dir.checkpoint(4).joinpath("manifest.json").exists()


@pytest.mark.parametrize("problem", ["removed", "model", "too short", "other stages"])
def test_forks_that_cannot_go_on_are_refused(
    saved: Checkpoint, alice: User, spec: RunSpec, problem: str
) -> None:
    warm_up, rl = spec.stages
    if problem == "removed":
        saved = Checkpoint.objects.get(run=saved.run, step=2)
    elif problem == "model":
        spec = spec.model_copy(update={"model": ModelSpec(ref="org/other")})
    elif problem == "too short":
        spec = spec.model_copy(update={"stages": (warm_up,)})
    else:
        short = warm_up.model_copy(update={"steps": 2})
        spec = spec.model_copy(update={"stages": (short, rl)})
    with pytest.raises(LaunchRefused):
        services.restart_from(saved, alice, spec)
    assert Run.objects.count() == 1
