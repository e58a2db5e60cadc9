from __future__ import annotations

from pathlib import Path

import pytest

from training_core.contract.events import (
    CheckpointSaved,
    DomainResult,
    EvaluationFinished,
    Interval,
    MetricsLogged,
    Notice,
    PairedDifference,
    PhaseProgress,
)
from training_core.monitors.jsonl import EventLog
from training_core.monitors.narration import line_for, narrate


def metrics(**values: float) -> MetricsLogged:
    named = {name.replace("__", "/"): value for name, value in values.items()}
    return MetricsLogged(seq=1, t=0.0, step=7, stage="rl", values=named)


def test_a_step_says_what_it_did_and_how_long() -> None:
    line = line_for(metrics(reward=0.25, sft__loss=1.5, time__step=3.14))
    assert line == "step 7 (rl), reward 0.25, loss 1.5, 3.1 s"


def test_metrics_of_an_evaluation_have_no_line_of_their_own() -> None:
    assert line_for(metrics(**{"eval__pass@1": 0.5})) is None


def test_a_reward_of_zero_and_one_that_is_no_number_are_shown() -> None:
    line = line_for(metrics(reward=0.0, entropy=float("nan"), time__step=1.0))
    assert line == "step 7 (rl), reward 0, entropy nan, 1.0 s"


def test_an_evaluation_says_its_gain_with_the_interval() -> None:
    half = Interval(value=0.5, low=0.4, high=0.6, n=96)
    gain = Interval(value=0.25, low=0.125, high=0.375, n=96)
    whole = DomainResult(
        domain="all",
        pass_at_1=half,
        reward=half,
        components={},
        unscored=0,
        mean_length_tokens=3.0,
        truncated_frac=0.0,
        compared=(PairedDifference(against_step=0, against_label="base model", difference=gain),),
    )
    event = EvaluationFinished(
        seq=1,
        t=0.0,
        step=9,
        stage="rl",
        label="final",
        title="final",
        recipe="r",
        seconds=2.0,
        results=(whole,),
    )
    assert line_for(event) == (
        "evaluation, final: pass@1 0.500 of 96 held-out prompts,"
        " +0.250 [+0.125, +0.375] against base model, 2.0 s"
    )


def test_phases_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    narrate(
        PhaseProgress(
            seq=1, t=0.0, step=1, stage="rl", phase="rollout", done=1, total=2, unit="rollouts"
        )
    )
    assert capsys.readouterr().out == ""


def test_the_event_log_echoes_what_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = EventLog(tmp_path / "events.jsonl", echo=narrate)
    log.emit(Notice, step=1, level="warning", code="x", message="Look here.")
    log.emit(
        CheckpointSaved,
        step=1,
        stage="rl",
        path="checkpoints/step-000001",
        size_bytes=2_000_000,
        is_best=True,
        pass_at_1=None,
        removed=(),
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("  warning: Look here.")
    assert lines[1].endswith("  checkpoint checkpoints/step-000001, 2 MB, the best so far")
    assert len(lines[0].split("  ")[0]) == len("00:00:00")


def test_a_console_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("builtins.print", refuse)
    narrate(Notice(seq=1, t=0.0, step=1, level="info", code="x", message="m"))
