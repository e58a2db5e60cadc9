"""The whole line without a browser: launch, worker, real trainer, rows; killed and resumed."""

from __future__ import annotations

import signal

from tests.webapp.runs_control.index import index_of
from tests.workers.conftest import StartCelery, state_of, step_of, trainers_of, wait_for
from training_core.contract.metrics import is_wall_clock
from training_core.contract.spec import RunSpec
from webapp.accounts.models import User
from webapp.lifecycle import reingest
from webapp.metrics.models import MetricSeries
from webapp.metrics.read import read_series
from webapp.rollouts.models import Rollout
from webapp.runs import services
from webapp.runs.models import Attempt, Checkpoint, Run


def exact_series(run: Run) -> dict[str, list[tuple[int, float]]]:
    """Every series that must repeat bit for bit."""
    keys = MetricSeries.objects.filter(run=run).values_list("key", flat=True)
    return {key: read_series(run.pk, key) for key in keys if not is_wall_clock(key)}


def live_completions(run: Run) -> list[tuple[int, str, int, str, float | None]]:
    """What the policy wrote, without what was superseded."""
    rollouts = Rollout.objects.filter(group__run=run, group__superseded=False)
    return sorted(
        rollouts.values_list("group__step", "group__kind", "index", "completion", "reward"), key=str
    )


def test_a_run_killed_with_its_worker_equals_one_that_was_left_alone(
    start_worker: StartCelery, alice: User, spec: RunSpec
) -> None:
    real = "workers.celery_app"
    worker = start_worker("one", app=real)
    undisturbed = services.launch_run(owner=alice, spec=spec)
    wait_for(lambda: state_of(undisturbed) == "succeeded", "the undisturbed run")
    killed = services.launch_run(owner=alice, spec=spec)
    wait_for(lambda: step_of(killed) >= 7, "step 7")
    worker.kill()
    worker.wait()
    start_worker("one", app=real)
    wait_for(lambda: state_of(killed) == "succeeded", "the resumed run")
    first, second = Attempt.objects.filter(run=killed).order_by("number")
    assert (first.cause, second.outcome) == ("worker_lost", "succeeded")
    assert second.start_step is not None
    assert second.start_step >= 2
    expected = exact_series(undisturbed)
    assert len(expected["reward"]) == 8
    assert str(exact_series(killed)) == str(expected)  # as text, since NaN differs from itself
    assert live_completions(killed) == live_completions(undisturbed)
    before = index_of(killed)
    reingest(killed.pk)
    assert index_of(killed) == before
    one_step_more_from_its_last_checkpoint(killed, spec)


def one_step_more_from_its_last_checkpoint(run: Run, spec: RunSpec) -> None:
    """A fork goes on where its parent ended."""
    warm_up, rl = spec.stages
    longer = spec.model_copy(update={"stages": (warm_up, rl.model_copy(update={"steps": 9}))})
    last = Checkpoint.objects.get(run=run, step=12)
    child = services.restart_from(last, run.owner, longer)
    wait_for(lambda: state_of(child) == "succeeded", "the fork")
    assert Attempt.objects.get(run=child).start_step == 12
    assert [step for step, _ in read_series(child.pk, "reward")] == [13]


def test_a_trainer_that_is_killed_is_started_again_and_saves_when_its_worker_ends(
    start_worker: StartCelery, alice: User, spec: RunSpec
) -> None:
    worker = start_worker("one", app="workers.celery_app")
    warm_up, rl = spec.stages
    endless = spec.model_copy(update={"stages": (warm_up, rl.model_copy(update={"steps": 5000}))})
    run = services.launch_run(owner=alice, spec=endless)
    wait_for(lambda: step_of(run) >= 5, "step 5")
    for process in trainers_of(run):
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: Attempt.objects.filter(run=run, number=2, last_step__gt=6).exists())
    worker.terminate()
    assert worker.wait(30) == 0
    assert state_of(run) == "queued"
    first, second = Attempt.objects.filter(run=run).order_by("number")
    assert (first.cause, second.outcome) == ("killed", "shutdown")
    newest = Checkpoint.objects.filter(run=run).on_disk().order_by("-step")[0]
    assert newest.step == second.last_step == step_of(run)
    assert newest.directory.is_dir()
    steps = [step for step, _ in read_series(run.pk, "reward")]
    assert steps == list(range(5, step_of(run) + 1))
