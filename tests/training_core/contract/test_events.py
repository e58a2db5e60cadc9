from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from training_core.contract.events import (
    EVENT,
    AttemptFinished,
    DomainResult,
    EvaluationFinished,
    Interval,
    MetricsLogged,
    PhaseProgress,
)
from training_core.contract.rollouts import RewardScore, RolloutRecord


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@given(st.dictionaries(st.text(max_size=20), st.floats(), max_size=8))
def test_every_float_survives_the_line(values: dict[str, float]) -> None:
    event = MetricsLogged(seq=1, t=0.25, step=3, stage="rl", values=values)
    line = event.model_dump_json()
    json.loads(line, parse_constant=pytest.fail)  # strict JSON: no bare NaN or Infinity
    assert "\n" not in line
    again = EVENT.validate_json(line)
    assert isinstance(again, MetricsLogged)
    assert again.values.keys() == values.keys()
    assert all(same(again.values[key], value) for key, value in values.items())


def test_what_is_not_finite_is_spelt_out() -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf}
    line = MetricsLogged(seq=1, t=0, step=1, stage="", values=values).model_dump_json()
    assert json.loads(line)["values"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity"}


def test_nested_intervals_survive_too() -> None:
    empty = Interval(value=math.nan, low=math.nan, high=math.inf, n=0)
    result = DomainResult(
        domain="all",
        pass_at_1=empty,
        reward=empty,
        components={"format": empty},
        unscored=3,
        mean_length_tokens=math.nan,
        truncated_frac=0.0,
    )
    event = EvaluationFinished(
        seq=2,
        t=1,
        step=0,
        stage="",
        label="start",
        title="base model",
        recipe="r",
        seconds=1,
        results=(result,),
    )
    again = EVENT.validate_json(event.model_dump_json())
    assert isinstance(again, EvaluationFinished)
    assert math.isnan(again.results[0].components["format"].value)
    assert again.results[0].reward.high == math.inf


def test_the_kind_decides_the_type() -> None:
    event = AttemptFinished(seq=9, t=1, step=4, outcome="failed", cause="diverged", message="m")
    assert EVENT.validate_json(event.model_dump_json()) == event
    phase = PhaseProgress(
        seq=1, t=1, step=1, stage="rl", phase="rollout", done=1, total=2, unit="rollouts"
    )
    assert isinstance(EVENT.validate_python(phase.model_dump()), PhaseProgress)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        '{"kind": "metrics"}',
        '{"kind": "nope", "seq": 1, "t": 0}',
        '{"kind": "stage_started", "seq": 0, "t": 0, "step": 0, "stage": "a", "index": 0}',
        '{"kind": "stage_started", "seq": 1, "t": 0, "step": 0, "stage": "a", "index": 0, "x": 1}',
        '{"kind": "metrics", "seq": 1, "t": 0, "step": 1, "stage": "a", "values": {"a": "many"}}',
    ],
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(line)


def test_an_unscored_rollout_stays_unscored() -> None:
    score = RewardScore(name="c", weight=1, status="gold_bad", value=None, explanation="why")
    record = RolloutRecord(
        index=0,
        completion="a",
        text="a",
        tokens=1,
        token_ids=(1,),
        logprobs=(-math.inf,),
        finish_reason="eos",
        scores=(score,),
        reward=None,
        advantage=None,
    )
    again = RolloutRecord.model_validate_json(record.model_dump_json())
    assert again == record
    assert (again.reward, again.scores[0].value) == (None, None)
    assert again.logprobs == (-math.inf,)
