from __future__ import annotations

import threading

import pytest
from django.db import connection

from tests.engines import Engines
from training_core.contract.spec import EvaluationSpec, ModelSpec, RunSpec
from webapp.accounts.models import User
from webapp.control.claims import Claim, claim_run
from webapp.runs import disk, services
from webapp.runs.models import ControlRequest, Run, RunEvent
from webapp.runs.refusals import ControlRefused, LaunchRefused
from webapp.runs.status import RunState

ALL_STATES = [state.value for state in RunState]


def put(run: Run, state: str) -> Run:
    """The run in a state, however it came there."""
    Run.objects.filter(pk=run.pk).update(
        state=state, lease_owner="train@one", lease_until="2999-01-01T00:00Z", attempt=1
    )
    return Run.objects.get(pk=run.pk)


def test_a_launch_is_a_queued_row_with_an_event(alice: User, spec: RunSpec) -> None:
    run = services.launch_run(owner=alice, spec=spec, preset="tiny-model")
    assert (run.state, run.number, run.total_steps, run.preset) == ("queued", 1, 12, "tiny-model")
    assert run.read_spec() == spec
    assert [e.to_state for e in RunEvent.objects.filter(run=run)] == ["queued"]


def test_numbers_are_never_given_twice(alice: User, spec: RunSpec) -> None:
    first = services.launch_run(owner=alice, spec=spec)
    services.stop_run(first, alice)
    services.delete_run(first, alice)
    assert services.launch_run(owner=alice, spec=spec).number == 2


def test_a_spec_that_cannot_run_is_refused_at_its_fields(alice: User, spec: RunSpec) -> None:
    bad = spec.model_copy(
        update={
            "model": ModelSpec(ref="no such model"),
            "evaluation": EvaluationSpec(success_reward="beauty", max_new_tokens=32),
        }
    )
    with pytest.raises(LaunchRefused) as refusal:
        services.launch_run(owner=alice, spec=bad)
    assert [e.path for e in refusal.value.errors] == ["model.ref", "evaluation.success_reward"]
    assert not Run.objects.exists()


def test_a_run_that_will_not_fit_is_refused_with_numbers(
    alice: User, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(disk.BUILTIN_PARAMETERS, "tiny", 10**13)
    with pytest.raises(LaunchRefused, match=r"needs about \d+\.\d GB .* only \d"):
        services.launch_run(owner=alice, spec=spec)


def test_one_key_gives_one_run(alice: User, bob: User, spec: RunSpec) -> None:
    first = services.launch_run(owner=alice, spec=spec, idempotency_key="k")
    again = services.launch_run(owner=alice, spec=spec, idempotency_key="k")
    other = services.launch_run(owner=bob, spec=spec, idempotency_key="k")
    assert first == again
    assert other != first


def test_another_spec_under_an_old_key_is_another_run(alice: User, spec: RunSpec) -> None:
    """The browser's Back button brings the form with the key that it had."""
    first = services.launch_run(owner=alice, spec=spec, idempotency_key="k")
    changed = spec.model_copy(update={"seed": spec.seed + 1})
    second = services.launch_run(owner=alice, spec=changed, idempotency_key="k")
    assert second != first
    assert second.read_spec().seed == changed.seed


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_give_one_run(spec: RunSpec) -> None:
    alice = User.objects.create_user("alice")
    launched: list[Run] = []

    def click() -> None:
        try:
            launched.append(services.launch_run(owner=alice, spec=spec, idempotency_key="k"))
        finally:
            connection.close()

    clicks = [threading.Thread(target=click) for _ in range(4)]
    for thread in clicks:
        thread.start()
    for thread in clicks:
        thread.join()
    assert len(launched) == 4
    assert len({run.pk for run in launched}) == 1
    assert Run.objects.count() == 1


@pytest.mark.parametrize("state", ALL_STATES)
def test_stop_in_each_state(run: Run, alice: User, state: str) -> None:
    run = put(run, state)
    if state in {"draft", "stopping", "stopped", "succeeded", "failed"}:
        with pytest.raises(ControlRefused, match=f"is {state}"):
            services.stop_run(run, alice)
        return
    stopped = services.stop_run(run, alice)
    is_live = state in {"starting", "running", "pausing"}
    assert stopped.state == ("stopping" if is_live else "stopped")
    assert ControlRequest.objects.filter(run=run, command="stop", attempt=1).count() == is_live


@pytest.mark.parametrize("state", ALL_STATES)
def test_pause_in_each_state(run: Run, alice: User, state: str) -> None:
    run = put(run, state)
    expected = {
        "queued": "paused",
        "lost": "paused",
        "starting": "pausing",
        "running": "pausing",
    }.get(state)
    if expected is None:
        with pytest.raises(ControlRefused):
            services.pause_run(run, alice)
    else:
        assert services.pause_run(run, alice).state == expected


@pytest.mark.parametrize("state", ALL_STATES)
def test_resume_in_each_state(run: Run, alice: User, state: str) -> None:
    run = put(run, state)
    Run.objects.filter(pk=run.pk).update(idle_attempts=3)
    if state not in {"paused", "stopped", "failed"}:
        with pytest.raises(ControlRefused):
            services.resume_run(run, alice)
        return
    resumed = services.resume_run(run, alice)
    assert (resumed.state, resumed.idle_attempts, resumed.finished_at) == ("queued", 0, None)
    assert claim_run(run.pk, "train@two", "boot") is not None


def test_a_command_that_waits_is_not_asked_twice(claim: Claim, run: Run, alice: User) -> None:
    first = services.evaluate_now(run, alice)
    assert services.evaluate_now(run, alice) == first
    assert services.checkpoint_now(run, alice) != first


def test_nobody_commands_a_trainer_that_is_not_there(run: Run, alice: User) -> None:
    with pytest.raises(ControlRefused, match="no trainer"):
        services.evaluate_now(run, alice)


def test_the_message_goes_after_the_commit(
    run: Run,
    alice: User,
    engines: Engines,
    django_capture_on_commit_callbacks: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[object] = []
    monkeypatch.setattr("webapp.runs.dispatch.send_task", lambda _, pk: sent.append(pk) or True)
    services.pause_run(run, alice)
    with django_capture_on_commit_callbacks(execute=False) as callbacks:  # type: ignore[operator]
        services.resume_run(run, alice)
        assert sent == []
    for callback in callbacks:
        callback()
    assert sent == [run.pk]
    run.refresh_from_db()
    assert run.sent_at is not None


def test_archive_is_a_switch(run: Run, alice: User) -> None:
    assert services.archive_run(run, alice).archived_at is not None
    assert not Run.objects.unarchived().exists()
    assert services.archive_run(run, alice).archived_at is None


@pytest.mark.parametrize("state", ["queued", "starting", "running", "pausing", "paused", "lost"])
def test_what_may_still_move_is_not_deleted(run: Run, alice: User, state: str) -> None:
    run = put(run, state)
    with pytest.raises(ControlRefused):
        services.delete_run(run, alice)
    assert Run.objects.filter(pk=run.pk).exists()
