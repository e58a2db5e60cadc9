"""Drawing a token: the inverse of the cumulative distribution, at the temperature asked for."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from training_core.rollouts.sampling import (
    BLOCK_DRAWS,
    UniformStreams,
    likeliest_tokens,
    sample_tokens,
)

PROBS = [0.2, 0.3, 0.0, 0.5]
LOGITS = torch.tensor(PROBS).log()


def drawn(uniforms: list[float], temperature: float = 1.0) -> list[int]:
    """Many draws from one row."""
    rows_A = torch.zeros(len(uniforms), dtype=torch.long)
    uniform_A = torch.tensor(uniforms, dtype=torch.float64)
    return sample_tokens(LOGITS[None], rows_A, uniform_A, temperature=temperature).tokens_A.tolist()


def test_first_token_whose_cumulative_probability_exceeds_the_uniform() -> None:
    assert drawn([0.0, 0.19, 0.21, 0.49, 0.51, 0.99]) == [0, 0, 1, 1, 3, 3]


def test_a_token_without_probability_is_never_drawn() -> None:
    """Not even by a uniform that rounds up to 1 in float32."""
    assert 2 not in drawn([n / 997 for n in range(997)])
    cut = torch.tensor([[0.0, -math.inf]]).expand(3, -1)
    largest = torch.tensor([0.0, 0.5, math.nextafter(1.0, 0.0)], dtype=torch.float64)
    found = sample_tokens(cut, torch.arange(3), largest, temperature=1.0)
    assert found.tokens_A.tolist() == [0, 0, 0]


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_shares_are_those_of_the_softmax(temperature: float) -> None:
    grid = 2000
    counts = Counter(drawn([(n + 0.5) / grid for n in range(grid)], temperature))
    powers = [probability ** (1 / temperature) for probability in PROBS]
    for token, power in enumerate(powers):
        assert counts[token] / grid == pytest.approx(power / sum(powers), abs=2 / grid)


def test_draws_come_from_their_rows() -> None:
    sure = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    rows_A = torch.tensor([1, 0, 0, 1])
    found = sample_tokens(sure, rows_A, torch.full((4,), 0.5), temperature=1.0)
    assert found.tokens_A.tolist() == [1, 0, 0, 1]


def test_log_probability_and_entropy_at_the_temperature() -> None:
    found = sample_tokens(LOGITS[None], torch.tensor([0]), torch.tensor([0.9]), temperature=2.0)
    powers = [math.sqrt(probability) for probability in PROBS]
    shares = [power / sum(powers) for power in powers]
    assert found.logprobs_A.tolist() == pytest.approx([math.log(shares[3])], abs=1e-6)
    entropy = -sum(share * math.log(share) for share in shares if share)
    assert found.entropy_A.tolist() == pytest.approx([entropy], abs=1e-6)


def test_greedy_takes_the_likeliest() -> None:
    rows = torch.stack([LOGITS, -LOGITS.clamp(min=-5.0)])
    found = likeliest_tokens(rows, torch.tensor([0, 1, 0]))
    assert found.tokens_A.tolist() == [3, 2, 3]
    assert found.logprobs_A[0].item() == pytest.approx(math.log(0.5))
    entropy = -sum(share * math.log(share) for share in PROBS if share)
    assert found.entropy_A[0].item() == pytest.approx(entropy, abs=1e-6)


def test_logits_that_are_no_numbers_are_carried_on_not_a_crash() -> None:
    """A diverged policy is named by the update that finds its loss not finite."""
    broken = torch.stack([torch.full((4,), math.nan), LOGITS])
    uniform_A = torch.tensor([0.4, 0.4])
    found = sample_tokens(broken, torch.tensor([0, 1]), uniform_A, temperature=1.0)
    assert 0 <= found.tokens_A[0] < 4
    assert math.isnan(found.logprobs_A[0])
    assert found.tokens_A[1] == 1


def test_a_row_has_a_stream_of_its_own() -> None:
    together = UniformStreams([7, 8, 9])
    alone = UniformStreams([8])
    everyone, itself = torch.arange(3), torch.tensor([0])
    seen = []
    for position in range(2 * BLOCK_DRAWS + 3):
        of_all = together.column_B(position, everyone)
        assert alone.column_B(position, itself).item() == of_all[1].item()
        seen += of_all.tolist()
    assert len(set(seen)) == len(seen)
    assert all(0 <= number < 1 for number in seen)


def test_rows_that_have_left_do_not_shift_the_others() -> None:
    full, thinned = UniformStreams([7, 8, 9]), UniformStreams([7, 8, 9])
    for position in range(BLOCK_DRAWS + 2):
        rows = torch.tensor([0, 1, 2] if position < 5 else [2])
        expected = full.column_B(position, torch.arange(3))[rows]
        assert torch.equal(thinned.column_B(position, rows), expected)
