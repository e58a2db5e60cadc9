"""A launched run, a supervisor for it, and a way to wait for things."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.db import connections

from tests.engines import Engines
from training_core.contract.presets import TINY_COPY
from training_core.contract.spec import CheckpointSpec, EvaluationSpec, ResourceSpec, RunSpec
from webapp.accounts.models import User
from webapp.launcher.process_end import is_alive
from webapp.lifecycle import claim_run
from webapp.runs.models import Run
from webapp.runs.services import launch_run
from webapp.workers_page.models import Worker
from workers.escalation import Graces
from workers.supervisor import Supervisor
from workers.trainer_process import MARK

StartCelery = Callable[..., subprocess.Popen[bytes]]

QUICK: dict[object, Graces] = {
    "stop": Graces(0.5, 1.0),
    "pause": Graces(0.5, 1.0),
    "shutdown": Graces(0.0, 0.8),
    "finish": Graces(0.3, 0.6),
}
WAIT_S = 60.0


@pytest.fixture
def alice(transactional_db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def spec() -> RunSpec:
    """Twelve quick steps of the tiny model, saved every second step."""
    warm_up, rl = TINY_COPY.spec.stages
    domain = TINY_COPY.spec.domains[0].model_copy(update={"held_out_items": 4})
    return TINY_COPY.spec.model_copy(
        update={
            "name": "a run",
            "domains": (domain,),
            "stages": (
                warm_up.model_copy(update={"steps": 4, "batch_size": 2}),
                rl.model_copy(update={"steps": 8, "prompts_per_step": 2, "group_size": 2}),
            ),
            "evaluation": EvaluationSpec(interval_steps=4, max_new_tokens=32),
            "checkpoint": CheckpointSpec(interval_steps=2),
            "resources": ResourceSpec(threads=1, max_attempts=3, device="cpu"),
        }
    )


@pytest.fixture
def run(alice: User, spec: RunSpec) -> Run:
    return launch_run(owner=alice, spec=spec)


@pytest.fixture
def supervise(run: Run) -> Callable[..., Supervisor]:
    """Claim the run and make a supervisor whose trainer plays a scene."""

    def make(scene: str, shutdown: threading.Event | None = None) -> Supervisor:
        claim = claim_run(run.pk, "train@one", "boot-1")
        assert claim is not None
        command = [sys.executable, "-m", "tests.workers.scripted", scene]
        stop = shutdown or threading.Event()
        return Supervisor(claim, command, device="", shutdown=stop, graces=QUICK)  # type: ignore[arg-type]

    return make


@pytest.fixture
def in_background() -> Iterator[Callable[[Callable[[], None]], threading.Thread]]:
    """Run something in a thread that is joined before the test ends."""
    threads: list[threading.Thread] = []

    def start(call: Callable[[], None]) -> threading.Thread:
        def body() -> None:
            try:
                call()
            finally:
                connections.close_all()

        thread = threading.Thread(target=body)
        thread.start()
        threads.append(thread)
        return thread

    yield start
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


@pytest.fixture
def start_celery(engines: Engines, transactional_db: None, tmp_path: Path) -> Iterator[StartCelery]:
    """Start a part of the Celery application; all of it is killed when the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, app: str = "tests.workers.scripted_app") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", app, *arguments, "--loglevel=INFO"]
        with (tmp_path / f"celery-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=engines.child_environment(OMP_NUM_THREADS="1"),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def start_worker(start_celery: StartCelery) -> StartCelery:
    """Start a worker of the train queue and wait until it hears."""

    def start(
        name: str = "one", app: str = "tests.workers.scripted_app"
    ) -> subprocess.Popen[bytes]:
        options = ("--queues=train", "--pool=threads", "--concurrency=1", f"--hostname={name}@test")
        process = start_celery("worker", *options, app=app)
        wait_for(lambda: Worker.objects.filter(name=f"{name}@test", pid=process.pid).exists())
        return process

    return start


def wait_for(condition: Callable[[], object], what: str = "the condition") -> None:
    """Return when the condition holds; a minute of waiting is a hang, less is slowness."""
    give_up = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up, f"waited {WAIT_S:.0f} s for {what}"
        time.sleep(0.05)


def state_of(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def trainers_of(run: Run) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(f"{run.pk}:") and is_alive(process):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def step_of(run: Run) -> int:
    return Run.objects.values_list("step", flat=True).get(pk=run.pk)
