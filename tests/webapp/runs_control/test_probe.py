"""Generators with hostile settings, checked in a process that is killed for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.rewards import CorrectnessReward, FormatReward, RewardSpec
from webapp.runs.probe import Prober

NUMBER = RewardSpec(root=CorrectnessReward())
SHAPE = RewardSpec(root=FormatReward())


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    prober = Prober()
    yield prober
    prober.close()


def domain(generator: str = "basic_arithmetic", **params: Any) -> ReasoningGymDomain:
    return ReasoningGymDomain(name="x", generator=generator, params=params)


def test_good_and_bad_domains_are_told_apart(prober: Prober) -> None:
    good, unknown, words = prober.faults(
        [domain(), domain("no_such_generator"), domain("spell_backward")], NUMBER
    )
    assert good == ()
    assert [fault.path for fault in unknown] == ["generator"]
    assert "'correctness'" in words[0].message


@pytest.mark.parametrize(
    "hostile",
    [
        domain(min_digits=3_000, max_digits=3_000),
        domain(min_digits=3_000_000, max_digits=3_000_000),
        domain("number_sorting", min_numbers=10**9, max_numbers=10**9),
    ],
    ids=["busy", "busy in C", "hungry"],
)
def test_settings_that_never_end_are_an_error_at_their_field(
    hostile: ReasoningGymDomain, prober: Prober
) -> None:
    """And the domains beside it are checked all the same."""
    before, found, after = prober.faults(
        [domain(max_terms=3), hostile, domain("no_such_generator")], SHAPE
    )
    assert before == ()
    assert [fault.path for fault in found] == ["params"]
    assert found[0].message.endswith("choose smaller numbers.")
    assert [fault.path for fault in after] == ["generator"]
    process = prober._process
    assert process is not None
    assert psutil.Process(process.pid).children() == []


def test_a_prober_that_dies_is_started_again(prober: Prober) -> None:
    prober.faults([domain(max_terms=4)], SHAPE)
    process = prober._process
    assert process is not None
    process.kill()
    process.wait()
    (found,) = prober.faults([domain("no_such_generator", a=1)], SHAPE)
    assert [fault.path for fault in found] == ["generator"]


def test_the_same_question_is_asked_once(prober: Prober) -> None:
    prober.faults([domain(max_terms=5)], SHAPE)
    prober.close()
    assert prober.faults([domain(max_terms=5)], SHAPE) == [()]
    assert prober._process is None


def test_the_prober_ends_with_whoever_asked() -> None:
    prober = Prober()
    prober.faults([domain()], SHAPE)
    process = prober._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() == 0
