"""The supervisor against trainers that end well, badly, late or never."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psutil
import pytest
from django.db import connections

from tests.engines import Engines
from tests.workers.conftest import state_of, wait_for
from webapp.accounts.models import User
from webapp.control.claims import claim_run
from webapp.metrics.models import LiveEvent
from webapp.metrics.read import read_series
from webapp.rollouts.models import RolloutGroup
from webapp.runs import services
from webapp.runs.models import Attempt, ControlRequest, Run, RunNotice
from workers.supervisor import Supervisor
from workers.trainer_process import MARK

Supervise = Callable[..., Supervisor]
InBackground = Callable[[Callable[[], None]], threading.Thread]


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def pids_of(run: Run) -> list[int]:
    file = run.directory / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_run_that_ends_well(run: Run, supervise: Supervise) -> None:
    supervise("succeed").run()
    done = fresh(run)
    assert (done.state, done.cause, done.step) == ("succeeded", "done", 3)
    assert read_series(run.pk, "reward") == [(1, 0.1), (2, 0.2), (3, pytest.approx(0.3))]
    assert RolloutGroup.objects.filter(run=run).count() == 6
    assert (done.lease_owner, done.phase) == ("", None)
    attempt = Attempt.objects.get(run=run)
    assert (attempt.outcome, attempt.worker) == ("succeeded", "train@one")
    assert done.run_dir.end_file(1).exists()


def test_a_crash_is_told_with_its_last_words_and_tried_again(
    run: Run, supervise: Supervise
) -> None:
    supervise("crash").run()
    crashed = fresh(run)
    assert (crashed.state, crashed.cause, crashed.idle_attempts) == ("queued", "exception", 1)
    assert "about to divide" in crashed.message
    assert "ZeroDivisionError: step 1 has no tokens" in crashed.message
    assert LiveEvent.objects.filter(kind="log", data__attempt=1).exists()


def test_a_run_that_only_crashes_is_given_up(run: Run, supervise: Supervise) -> None:
    for _ in range(3):
        supervise("crash").run()
    assert fresh(run).state == "failed"
    assert "Given up after 3 attempts" in fresh(run).message
    assert Attempt.objects.filter(run=run, outcome="failed").count() == 3


@pytest.mark.parametrize(
    ("scene", "cause", "words"),
    [
        ("vanish", "vanished", "without saying how"),
        ("die_by_signal", "killed", "SIGSEGV"),
    ],
)
def test_ends_without_a_word(
    run: Run, supervise: Supervise, scene: str, cause: str, words: str
) -> None:
    supervise(scene).run()
    assert (fresh(run).state, fresh(run).cause) == ("queued", cause)
    assert words in fresh(run).message


def test_out_of_memory_is_not_tried_again(run: Run, supervise: Supervise) -> None:
    supervise("out_of_memory").run()
    assert (fresh(run).state, fresh(run).cause) == ("failed", "out_of_memory")


def test_a_command_that_cannot_be_started(run: Run, supervise: Supervise) -> None:
    supervisor = supervise("succeed")
    supervisor.command = ["/no/such/program"]
    supervisor.run()
    assert (fresh(run).state, fresh(run).cause) == ("queued", "cannot_start")


@pytest.mark.parametrize(
    ("wish", "outcome"), [(services.stop_run, "stopped"), (services.pause_run, "paused")]
)
def test_a_wish_is_carried_to_the_trainer(
    run: Run,
    alice: User,
    supervise: Supervise,
    in_background: InBackground,
    wish: Callable[[Run, User], Run],
    outcome: str,
) -> None:
    thread = in_background(supervise("obey").run)
    wait_for(lambda: fresh(run).step > 2)
    wish(run, alice)
    thread.join()
    ended = fresh(run)
    assert (ended.state, ended.message) == (outcome, f"It was {outcome}.")
    request = ControlRequest.objects.get(run=run)
    assert request.result == "saved"
    assert request.sent_at is not None
    assert request.applied_at is not None


def test_a_trainer_that_is_deaf_is_killed_with_all_its_children(
    run: Run, alice: User, supervise: Supervise, in_background: InBackground
) -> None:
    thread = in_background(supervise("stubborn").run)
    wait_for(lambda: len(pids_of(run)) == 2)
    services.stop_run(run, alice)
    thread.join()
    assert (fresh(run).state, fresh(run).cause) == ("stopped", "killed_after_grace")
    wait_for(lambda: all(is_gone(pid) for pid in pids_of(run)), "the children's end")


def test_children_that_hide_do_not_outlive_their_trainer(run: Run, supervise: Supervise) -> None:
    supervise("orphans").run()
    assert fresh(run).state == "succeeded"
    assert len(pids_of(run)) == 2
    wait_for(lambda: all(is_gone(pid) for pid in pids_of(run)), "the children's end")


def test_a_trainer_that_does_not_exit_after_its_last_word(run: Run, supervise: Supervise) -> None:
    supervise("talk_and_hang").run()
    assert (fresh(run).state, fresh(run).cause) == ("succeeded", "done")


def test_a_line_in_two_halves_is_one_event(run: Run, supervise: Supervise) -> None:
    supervise("half_line").run()
    assert fresh(run).state == "succeeded"
    assert read_series(run.pk, "reward") == [(1, 0.1)]
    assert not RunNotice.objects.filter(run=run).exists()


def test_a_torn_line_is_no_event_and_a_checkpoint_is_progress(
    run: Run, supervise: Supervise
) -> None:
    Run.objects.filter(pk=run.pk).update(idle_attempts=2)
    supervise("torn").run()
    torn = fresh(run)
    assert (torn.state, torn.cause, torn.idle_attempts) == ("queued", "killed", 0)
    assert "SIGKILL" in torn.message
    assert torn.message == "The trainer was ended by SIGKILL. It goes on from step 1."
    assert read_series(run.pk, "reward") == [(1, 0.1)]
    assert not RunNotice.objects.filter(run=run).exists()


@pytest.mark.parametrize("scene", ["obey", "stubborn"])
def test_a_worker_that_shuts_down_hands_its_run_back(
    run: Run, supervise: Supervise, in_background: InBackground, scene: str
) -> None:
    shutdown = threading.Event()
    thread = in_background(supervise(scene, shutdown).run)
    wait_for(lambda: state_of(run) == "running")
    shutdown.set()
    thread.join()
    assert fresh(run).state == "queued"
    assert fresh(run).idle_attempts == 0
    assert Attempt.objects.get(run=run).outcome == "shutdown"


def test_a_shutdown_while_the_trainer_loads_is_no_crash(
    run: Run, supervise: Supervise, in_background: InBackground
) -> None:
    shutdown = threading.Event()
    thread = in_background(supervise("loading", shutdown).run)
    wait_for(lambda: pids_of(run))
    shutdown.set()
    thread.join()
    assert (fresh(run).state, fresh(run).cause) == ("queued", "ended_early")
    assert fresh(run).idle_attempts == 0


def test_a_supervisor_that_lost_its_lease_ends_its_trainer_and_says_nothing(
    run: Run, alice: User, supervise: Supervise, in_background: InBackground
) -> None:
    thread = in_background(supervise("stubborn").run)
    wait_for(lambda: len(pids_of(run)) == 2)
    Run.objects.filter(pk=run.pk).update(state="queued", lease_owner="")
    newer = claim_run(run.pk, "train@two", "boot-2")
    thread.join()
    assert newer is not None
    assert (fresh(run).state, fresh(run).lease_owner) == ("starting", "train@two")
    assert Attempt.objects.get(run=run, number=1).outcome == "failed"
    wait_for(lambda: all(is_gone(pid) for pid in pids_of(run)), "the children's end")


def test_a_run_deleted_under_its_supervisor_ends_its_trainer(
    run: Run, supervise: Supervise, in_background: InBackground
) -> None:
    thread = in_background(supervise("obey").run)
    wait_for(lambda: state_of(run) == "running")
    Attempt.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(state="stopped")
    thread.join()
    assert not any(
        process.info["environ"] and process.info["environ"].get(MARK) == f"{run.pk}:1"
        for process in psutil.process_iter(["environ"])
    )


def test_what_an_earlier_attempt_left_is_read_before_the_next_begins(
    run: Run, supervise: Supervise
) -> None:
    supervise("torn").run()
    Attempt.objects.filter(run=run).update(ingest_offset=0, last_seq=0)
    supervisor = supervise("succeed")
    supervisor.run()
    assert Attempt.objects.get(run=run, number=1).last_seq == 3


def test_a_disk_that_is_too_small_ends_the_attempt_before_it_begins(
    run: Run, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = supervise("succeed")
    monkeypatch.setattr("webapp.runs.disk.BUILTIN_PARAMETERS", {"tiny": 10**13})
    supervisor.run()
    assert (fresh(run).state, fresh(run).cause) == ("failed", "disk_full")
    assert not supervisor.claim.run_dir.events_file(1).exists()


def test_training_goes_on_while_postgresql_restarts(
    run: Run,
    alice: User,
    engines: Engines,
    supervise: Supervise,
    in_background: InBackground,
) -> None:
    supervisor = supervise("obey")
    thread = in_background(supervisor.run)
    wait_for(lambda: fresh(run).step > 2)
    engines.postgres.stop()
    events = supervisor.claim.run_dir.events_file(1)
    written = events.stat().st_size
    wait_for(lambda: events.stat().st_size > written + 3000, "events without a database")
    engines.postgres.start()
    connections.close_all()
    before = supervisor.tail.offset
    wait_for(lambda: supervisor.tail.offset > before, "the events to catch up")
    services.stop_run(run, alice)
    thread.join()
    series = read_series(run.pk, "reward")
    assert fresh(run).state == "stopped"
    assert [step for step, _ in series] == list(range(1, fresh(run).step + 1))
