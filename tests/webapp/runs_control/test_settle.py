from __future__ import annotations

import pytest

from training_core.contract.spec import RunSpec
from webapp.control.finish import retry_delay
from webapp.control.pace import Pace, advance, eta_s, start_pace
from webapp.control.verdicts import Verdict, settle
from webapp.runs.status import LIVE, Actor, RunState, find_move

CRASH = Verdict("failed", "exception", "It broke.", retryable=True)
TOO_BIG = Verdict("failed", "out_of_memory", "Too big.", retryable=True)
SHUTDOWN = Verdict("shutdown", "shutdown", "Handed back.")


def after(state: str, verdict: Verdict, progressed: bool = False, idle: int = 0) -> tuple[str, int]:
    settled = settle(
        RunState(state), verdict, progressed=progressed, idle_attempts=idle, max_attempts=3
    )
    return settled.state.value, settled.idle_attempts


@pytest.mark.parametrize(
    ("state", "verdict", "expected"),
    [
        ("running", Verdict("succeeded", "done", ""), "succeeded"),
        ("stopping", Verdict("succeeded", "done", ""), "succeeded"),
        ("stopping", Verdict("stopped", "user", ""), "stopped"),
        ("stopping", Verdict("paused", "user", ""), "stopped"),
        ("stopping", SHUTDOWN, "stopped"),
        ("stopping", CRASH, "stopped"),
        ("stopping", TOO_BIG, "stopped"),
        ("pausing", Verdict("paused", "user", ""), "paused"),
        ("pausing", SHUTDOWN, "paused"),
        ("pausing", CRASH, "paused"),
        ("pausing", TOO_BIG, "failed"),
        ("running", SHUTDOWN, "queued"),
        ("starting", SHUTDOWN, "queued"),
        ("running", CRASH, "queued"),
        ("running", TOO_BIG, "failed"),
        ("starting", Verdict("failed", "bad_model", "", retryable=True), "failed"),
        ("running", Verdict("failed", "exception", ""), "failed"),
    ],
)
def test_where_a_run_goes(state: str, verdict: Verdict, expected: str) -> None:
    assert after(state, verdict)[0] == expected


def test_a_crash_is_retried_until_attempts_without_progress_are_used_up() -> None:
    assert after("running", CRASH, idle=0) == ("queued", 1)
    assert after("running", CRASH, idle=1) == ("queued", 2)
    assert after("running", CRASH, idle=2) == ("failed", 3)


def test_progress_sets_the_count_back() -> None:
    assert after("running", CRASH, progressed=True, idle=2) == ("queued", 0)


def test_a_shutdown_is_no_failure() -> None:
    assert after("running", SHUTDOWN, idle=2) == ("queued", 2)


def test_a_trainer_that_stops_unasked_is_not_queued_for_ever() -> None:
    assert after("running", Verdict("stopped", "user", ""), idle=2)[0] == "failed"


@pytest.mark.parametrize("state", sorted(LIVE))
@pytest.mark.parametrize("outcome", ["succeeded", "stopped", "paused", "shutdown", "failed"])
@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize("progressed", [True, False])
def test_every_settlement_is_a_legal_move(
    state: RunState, outcome: str, retryable: bool, progressed: bool
) -> None:
    verdict = Verdict(outcome, "x", "", retryable=retryable)  # type: ignore[arg-type]
    target, _ = after(state, verdict, progressed, idle=2)
    move = find_move(state, RunState(target))
    assert move is not None
    assert Actor.WORKER in move.actors


def test_retries_wait_longer_and_longer() -> None:
    waits = [retry_delay(n).total_seconds() for n in range(9)]
    assert waits == [0, 0, 5, 10, 20, 40, 80, 120, 120]


def test_the_pace_of_a_stage_gives_the_eta_of_that_stage(spec: RunSpec) -> None:
    """Four sft steps are done, eight rl steps begin."""
    pace = start_pace(t=100.0, step=4)
    assert eta_s(pace, spec, 4) is None
    pace = advance(pace, t=102.0, step=5)
    assert eta_s(pace, spec, 5) == pytest.approx(2.0 * 7)
    pace = advance(pace, t=112.0, step=6)
    assert pace.step_s == pytest.approx(2.0 + 0.2 * 8.0)


def test_nothing_is_said_while_a_stage_of_another_kind_is_ahead(spec: RunSpec) -> None:
    pace = advance(start_pace(0.0, 0), t=1.0, step=1)
    assert eta_s(pace, spec, 1) is None
    assert eta_s(advance(pace, 4.0, 4), spec, 4) is None


def test_nothing_is_said_after_the_last_step(spec: RunSpec) -> None:
    """The page said "0.0 s left" all through the last evaluation."""
    pace = advance(start_pace(0.0, 4), t=8.0, step=12)
    assert spec.total_steps == 12
    assert eta_s(pace, spec, 11) == pytest.approx(1.0)
    assert eta_s(pace, spec, 12) is None


def test_an_evaluation_at_the_same_step_is_no_step() -> None:
    pace = advance(start_pace(0.0, 0), t=1.0, step=1)
    assert advance(pace, t=50.0, step=1) == pace
    assert advance(None, 5.0, 3) == Pace(5.0, 3)
