"""Real workers, a real broker, a real database: what must hold when any of them goes away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from django.utils import timezone

from tests.engines import Engines
from tests.workers.conftest import StartCelery, state_of, step_of, trainers_of, wait_for
from training_core.contract.spec import RunSpec
from training_core.contract.tasknames import TRAIN_RUN
from webapp.accounts.models import User
from webapp.broker import send_task
from webapp.launcher.process_end import is_alive
from webapp.runs import services
from webapp.runs.models import Attempt, Run
from webapp.workers_page.models import Worker

Launch = Callable[[str], Run]


@pytest.fixture
def launch(alice: User, spec: RunSpec) -> Launch:
    """Launch a run whose trainer plays the scene of its name."""

    def launch(scene: str) -> Run:
        return services.launch_run(owner=alice, spec=spec.model_copy(update={"name": scene}))

    return launch


def queue_length(engines: Engines) -> int:
    with redis.Redis.from_url(engines.valkey.url) as client:
        return int(client.llen("train"))  # type: ignore[arg-type]  # redis types its async twin


def test_many_deliveries_make_one_trainer_and_nobody_waits_behind_a_busy_worker(
    start_worker: StartCelery, launch: Launch
) -> None:
    for name in ("one", "two"):
        start_worker(name)
    busy = launch("obey")
    for _ in range(6):
        assert send_task(TRAIN_RUN, busy.pk)
    wait_for(lambda: step_of(busy) > 1)
    quick = [launch("succeed") for _ in range(2)]
    for run in quick:
        wait_for(lambda run=run: state_of(run) == "succeeded")  # type: ignore[misc]
        owner = Attempt.objects.get(run=run).worker
        assert owner != Attempt.objects.get(run=busy).worker
    assert Attempt.objects.filter(run=busy).count() == 1
    assert len(trainers_of(busy)) == 1
    services.stop_run(busy, busy.owner)
    wait_for(lambda: state_of(busy) == "stopped")


def test_a_worker_that_lost_its_broker_goes_on_and_hears_again(
    engines: Engines, start_worker: StartCelery, launch: Launch
) -> None:
    start_worker("one")
    busy = launch("obey")
    wait_for(lambda: step_of(busy) > 1)
    with redis.Redis.from_url(engines.valkey.url) as client:
        client.flushall()
    engines.valkey.stop()
    before = step_of(busy)
    wait_for(lambda: step_of(busy) > before + 5, "steps without a broker")
    engines.valkey.start()
    second = launch("succeed")
    tick = timezone.now()
    wait_for(lambda: Worker.objects.filter(consuming_at__gt=tick).exists(), "the worker to hear")
    assert queue_length(engines) == 1, "a busy worker took a message that an idle one could have"
    start_worker("two")
    wait_for(lambda: state_of(second) == "succeeded")
    assert Attempt.objects.get(run=second).worker == "two@test"
    services.stop_run(busy, busy.owner)
    wait_for(lambda: state_of(busy) == "stopped")
    third, fourth = launch("obey"), launch("obey")
    wait_for(lambda: {state_of(third), state_of(fourth)} == {"running"}, "both workers to hear")


def test_a_launch_without_a_broker_is_sent_when_there_is_one(
    engines: Engines,
    start_celery: StartCelery,
    start_worker: StartCelery,
    launch: Launch,
    tmp_path: Path,
) -> None:
    engines.valkey.stop()
    run = launch("succeed")
    run.refresh_from_db()
    assert (run.state, run.sent_at) == ("queued", None)
    start_celery("beat", f"--schedule={tmp_path / 'schedule'}", "--pidfile=")
    start_celery("worker", "--queues=cpu", "--pool=threads", "--hostname=cpu@test")
    start_worker("one")
    assert state_of(run) == "queued"
    engines.valkey.start()
    wait_for(lambda: state_of(run) == "succeeded")
    wait_for(lambda: Worker.objects.get(name="cpu@test").canary_at, "the canary")


def test_a_worker_that_is_told_to_end_hands_its_run_back(
    start_worker: StartCelery, launch: Launch
) -> None:
    worker = start_worker("one")
    run = launch("obey")
    wait_for(lambda: step_of(run) > 1)
    worker.terminate()
    assert worker.wait(30) == 0
    assert state_of(run) == "queued"
    assert Attempt.objects.get(run=run).outcome == "shutdown"
    assert trainers_of(run) == []
    assert Worker.objects.get().stopped_at is not None


def test_a_killed_worker_takes_its_trainer_with_it_and_its_heir_goes_on(
    start_worker: StartCelery, launch: Launch
) -> None:
    worker = start_worker("one")
    run = launch("obey")
    wait_for(lambda: step_of(run) > 1)
    (trainer,) = trainers_of(run)
    worker.kill()
    worker.wait()
    wait_for(lambda: not is_alive(trainer), "the trainer's end")
    assert state_of(run) == "running"
    start_worker("one")
    wait_for(lambda: state_of(run) == "running" and step_of(run) and trainers_of(run))
    first, second = Attempt.objects.filter(run=run).order_by("number")
    assert (first.cause, second.outcome) == ("worker_lost", "")


def test_no_worker_loads_torch(start_worker: StartCelery) -> None:
    worker = start_worker("one")
    maps = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "psycopg" in maps
    assert "torch" not in maps
