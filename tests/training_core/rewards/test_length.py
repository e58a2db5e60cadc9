from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.training_core.rewards.views import view
from training_core.contract.rewards import LengthReward
from training_core.rewards.length import score_length


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        # DAPO's own setting: L_max 20480 with a cache of 4096.
        (1, 0.0),
        (16_384, 0.0),
        (16_385, -1 / 4096),
        (17_408, -0.25),
        (18_432, -0.5),
        (20_479, -4095 / 4096),
        (20_480, -1.0),
        (20_481, -1.0),
        (10**9, -1.0),
    ],
)
def test_the_shape_of_equation_13(tokens: int, value: float) -> None:
    spec = LengthReward(target_tokens=16_384, limit_tokens=20_480)
    assert score_length(spec, view("", tokens=tokens)).value == value


def test_more_tokens_never_score_more() -> None:
    spec = LengthReward(target_tokens=3, limit_tokens=11)
    values = [score_length(spec, view("", tokens=n)).value for n in range(20)]
    assert values == sorted(values, key=lambda v: -v if v is not None else 0.0)
    assert len(set(values)) == 9


def test_explanations_name_the_numbers() -> None:
    spec = LengthReward(target_tokens=4, limit_tokens=8)
    said = [score_length(spec, view("", tokens=n)).explanation for n in (4, 6, 8)]
    assert said == [
        "4 tokens, within 4",
        "6 tokens, 2 over target",
        "8 tokens, at or over the limit of 8",
    ]


def test_a_limit_at_the_target_is_refused() -> None:
    with pytest.raises(ValidationError, match="limit_tokens"):
        LengthReward(target_tokens=8, limit_tokens=8)
