from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training_core.contract.domains import DatasetDomain
from training_core.curriculum.mix import MixState, Pick, next_prompts


def domains(*weights: float) -> list[DatasetDomain]:
    return [
        DatasetDomain(name=f"d{place}", dataset_version="v", weight=weight)
        for place, weight in enumerate(weights)
    ]


def draw(mix: Sequence[DatasetDomain], batches: Sequence[int], seed: int = 0) -> list[list[Pick]]:
    state = MixState(seed=seed)
    found = []
    for size in batches:
        state, picks = next_prompts(state, mix, size)
        found.append(list(picks))
    return found


WEIGHTS = st.lists(st.floats(0, 100) | st.just(0.0), min_size=1, max_size=12).filter(
    lambda weights: sum(weights) > 1e-6
)


@given(WEIGHTS, st.integers(0, 2**31 - 1), st.integers(1, 200))
def test_counts_follow_the_weights_within_one(weights: list[float], seed: int, n: int) -> None:
    """At the time of any pick each domain has had what its weight has earned, give or take one."""
    state, picks = next_prompts(MixState(seed=seed), domains(*weights), n)
    counts = Counter(pick.domain for pick in picks)
    for cursor in state.cursors:
        assert abs(counts[cursor.name] - cursor.due) <= 1 + 1e-9
        assert counts[cursor.name] == cursor.drawn
    assert state.drawn == n


@given(WEIGHTS, st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(0, 99))
def test_how_the_prompts_are_batched_changes_nothing(
    weights: list[float], batches: list[int], seed: int
) -> None:
    mix = domains(*weights)
    whole = draw(mix, [sum(batches)], seed)[0]
    assert [pick for batch in draw(mix, batches, seed) for pick in batch] == whole


@given(WEIGHTS, st.integers(0, 99))
def test_indices_count_up_in_each_domain(weights: list[float], seed: int) -> None:
    picks = draw(domains(*weights), [60], seed)[0]
    for name in {pick.domain for pick in picks}:
        indices = [pick.prompt_index for pick in picks if pick.domain == name]
        assert indices == list(range(len(indices)))


@given(WEIGHTS, st.integers(0, 99), st.integers(0, 40))
def test_a_saved_state_goes_on_exactly(weights: list[float], seed: int, first: int) -> None:
    mix = domains(*weights)
    state, _ = next_prompts(MixState(seed=seed), mix, first)
    restored = MixState.model_validate_json(state.model_dump_json())
    assert restored == state
    assert next_prompts(restored, mix, 30) == next_prompts(state, mix, 30)


@pytest.mark.parametrize(
    ("weights", "n"), [((1, 1, 1, 1), 4), ((3, 1), 8), ((0.5, 0.25, 0.25), 4), ((7, 2, 1), 10)]
)
def test_a_batch_is_exact_where_the_shares_are_whole(weights: tuple[float, ...], n: int) -> None:
    expected = Counter(
        {f"d{place}": round(n * w / sum(weights)) for place, w in enumerate(weights)}
    )
    for batch in draw(domains(*weights), [n] * 50, seed=3):
        assert Counter(pick.domain for pick in batch) == expected


def test_small_batches_of_many_domains_are_spread_evenly() -> None:
    """300 domains, 4 prompts a step: after 75 steps each has had its turn once."""
    batches = draw(domains(*[1.0] * 300), [4] * 150, seed=1)
    for half in (batches[:75], batches[75:]):
        assert set(Counter(pick.domain for batch in half for pick in batch).values()) == {1}
    neighbours = sum(
        abs(int(a.domain[1:]) - int(b.domain[1:])) == 1
        for batch in batches
        for a, b in itertools.pairwise(batch)
    )
    assert neighbours < 20


def test_weight_0_is_never_drawn() -> None:
    picks = draw(domains(0.0, 1.0, 0.0), [500])[0]
    assert {pick.domain for pick in picks} == {"d1"}


def test_a_mix_without_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="no domain has a weight above 0"):
        next_prompts(MixState(seed=0), domains(0.0, 0.0), 1)


def test_seeds_give_different_orders() -> None:
    mix = domains(1, 1, 1)
    assert draw(mix, [30], 0) == draw(mix, [30], 0)
    assert draw(mix, [30], 0) != draw(mix, [30], 1)


def test_weights_may_change_on_the_way() -> None:
    """A raised weight counts from now on; nothing is caught up for the time before."""
    state, _ = next_prompts(MixState(seed=0), domains(1, 99), 1_000)
    state, picks = next_prompts(state, domains(1, 1), 100)
    assert 49 <= Counter(pick.domain for pick in picks)["d0"] <= 51
    state, picks = next_prompts(state, domains(0, 1), 50)
    assert {pick.domain for pick in picks} == {"d1"}
    _, picks = next_prompts(state, domains(1, 0), 50)
    assert {pick.domain for pick in picks} == {"d0"}


def test_a_domain_that_leaves_and_returns_goes_on_where_it_was() -> None:
    both, alone = domains(1, 1), domains(1)
    state, picks = next_prompts(MixState(seed=0), both, 10)
    state, _ = next_prompts(state, alone, 10)
    _, again = next_prompts(state, both, 10)
    seen = max(pick.prompt_index for pick in picks if pick.domain == "d1")
    assert min(pick.prompt_index for pick in again if pick.domain == "d1") == seen + 1


@settings(deadline=None)
@given(st.integers(0, 99))
def test_rare_domains_start_at_a_random_time(seed: int) -> None:
    """A domain with one prompt in a hundred must not come first, nor always last."""
    picks = draw(domains(1, 99), [100], seed)[0]
    assert sum(pick.domain == "d0" for pick in picks) in (0, 1, 2)
