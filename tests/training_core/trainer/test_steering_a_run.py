"""Stop, pause, evaluate now and save now, at every kind of moment; a pause leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training_core.trainer.runs import (
    ask,
    assert_gapless,
    assert_same_run,
    evaluation_rows,
    final_files,
    live_events,
    metric_rows,
    new_run,
    of_kind,
    read_events,
    run_here,
)
from training_core.checkpoints import read_checkpoint
from training_core.contract.control import Command
from training_core.contract.events import Event
from training_core.contract.rundir import RunDir
from training_core.monitors import steering as steering_module

Listener = Callable[[Event], None]


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of a second would be over between two looks."""
    monkeypatch.setattr(steering_module, "LOOK_INTERVAL_S", 0.0)


def when(
    run_dir: RunDir, command: Command, *, kind: str, step: int, phase: str = "", attempt: int = 1
) -> Listener:
    """Ask as soon as the first such event is written."""
    asked: list[bool] = []

    def listen(event: Event) -> None:
        fits = event.kind == kind and getattr(event, "step", None) == step
        if fits and getattr(event, "phase", "") == phase and not asked:
            asked.append(True)
            ask(run_dir, command, attempt=attempt)

    return listen


MOMENTS = {
    "in a rollout": ("phase", 6, "rollout", 5),
    "in an update": ("phase", 8, "update", 7),
    "in an sft update": ("phase", 3, "sft", 2),
    "at a boundary": ("metrics", 5, "", 5),
    "in an evaluation": ("phase", 7, "evaluate", 7),
    "in the last evaluation": ("phase", 12, "evaluate", 12),
    "in the evaluation of the base model": ("phase", 0, "evaluate", 0),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_pause_leaves_no_trace(moment: str, whole: RunDir, tmp_path: Path) -> None:
    kind, step, phase, expected = MOMENTS[moment]
    run_dir = new_run(tmp_path)
    ending = run_here(run_dir, 1, when(run_dir, "pause", kind=kind, step=step, phase=phase))
    assert (ending.outcome, ending.cause, ending.step) == ("paused", "user", expected)
    again = run_here(run_dir, 2)
    assert (again.outcome, again.step) == ("succeeded", 12)
    (start,) = of_kind(read_events(run_dir, 2), "attempt_started")
    assert start.start_step == expected
    assert_same_run(run_dir, whole)
    assert_gapless(run_dir)


@pytest.mark.parametrize(("command", "outcome"), [("stop", "stopped"), ("shutdown", "shutdown")])
def test_an_ending_is_acknowledged_after_the_last_whole_step_is_saved(
    command: Command, outcome: str, tmp_path: Path
) -> None:
    run_dir = new_run(tmp_path)
    ending = run_here(run_dir, 1, when(run_dir, command, kind="phase", step=8, phase="rollout"))
    assert (ending.outcome, ending.step) == (outcome, 7)
    assert "step 7" in ending.message
    assert read_checkpoint(run_dir.checkpoint(7)).state.step == 7
    events = read_events(run_dir)
    (applied,) = of_kind(events, "control")
    assert (applied.control_id, applied.command, applied.step) == (f"{command}-1", command, 7)
    assert applied.result == "saved at step 7"
    assert events.index(applied) > events.index(of_kind(events, "checkpoint")[-1])


def test_a_stop_before_the_first_step_has_nothing_to_save(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)
    ask(run_dir, "stop")
    ending = run_here(run_dir)
    assert (ending.outcome, ending.step) == ("stopped", 0)
    (applied,) = of_kind(read_events(run_dir), "control")
    assert applied.result == "nothing to save at step 0"
    assert not run_dir.checkpoints.exists()


def test_of_two_endings_the_first_wins_and_both_are_answered(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)
    ask(run_dir, "pause")
    ask(run_dir, "stop")
    assert run_here(run_dir).outcome == "paused"
    results = {e.command: e.result for e in of_kind(read_events(run_dir), "control")}
    assert results == {
        "pause": "nothing to save at step 0",
        "stop": "overtaken by another command",
    }


def test_commands_of_an_earlier_attempt_are_not_applied_again(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)
    ask(run_dir, "pause")
    run_here(run_dir)
    assert run_here(run_dir, 2).outcome == "succeeded"


def test_evaluate_now_and_checkpoint_now(whole: RunDir, tmp_path: Path) -> None:
    """Both take effect at the next boundary, once, and training is the same with them."""
    run_dir = new_run(tmp_path)
    heard: list[Listener] = [
        when(run_dir, "evaluate_now", kind="phase", step=5, phase="rollout"),
        when(run_dir, "checkpoint_now", kind="phase", step=8, phase="update"),
    ]
    run_here(run_dir, 1, lambda event: [listen(event) for listen in heard] and None)
    events = read_events(run_dir)
    answers = {e.command: (e.step, e.result) for e in of_kind(events, "control")}
    assert answers == {"evaluate_now": (5, "done"), "checkpoint_now": (8, "done")}
    (requested,) = [e for e in of_kind(events, "evaluation") if e.label == "requested"]
    assert (requested.step, requested.title) == (5, "step 5, on request")
    assert [e.step for e in of_kind(events, "checkpoint")] == [3, 4, 6, 8, 9, 12]
    assert final_files(run_dir) == final_files(whole)
    extra = metric_rows(run_dir)
    assert {key: extra[key] for key in metric_rows(whole)} == metric_rows(whole)
    assert {step for step, _ in extra.keys() - metric_rows(whole).keys()} == {5}
    assert [row for row in evaluation_rows(run_dir) if row["label"] != "requested"] == (
        evaluation_rows(whole)
    )


def test_one_evaluation_answers_two_requests(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)
    ask(run_dir, "evaluate_now", name="a")
    ask(run_dir, "evaluate_now", name="b")
    run_here(run_dir)
    events = live_events(run_dir)
    assert [e.control_id for e in of_kind(events, "control")] == ["a", "b"]
    assert [e.step for e in of_kind(events, "evaluation")] == [0, 1, 4, 7, 10, 12]
