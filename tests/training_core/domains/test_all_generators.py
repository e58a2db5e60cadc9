"""Every generator of reasoning-gym with its own settings: as a domain, or refused with a reason.

Each has a few seconds; one that needs more shows itself here instead of in somebody's run.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from reasoning_gym.factory import DATASETS

from tests.training_core.domains.specs import opened
from training_core.contract.domains import ReasoningGymDomain
from training_core.domains.generator_quirks import (
    GLOBAL_RANDOM,
    HASH_ORDERED,
    NOISY,
    REFUSED,
)
from training_core.domains.generator_stream import is_reserved
from training_core.domains.sources import validate_domain

LIMIT_S = 30
PROMPTS = (0, 1, 64)


@contextmanager
def time_limit(seconds: int, what: str) -> Iterator[None]:
    def give_up(*_: Any) -> None:
        pytest.fail(f"{what} needs more than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def spec_of(generator: str) -> ReasoningGymDomain:
    return ReasoningGymDomain(name="test/domain", generator=generator, held_out_items=2)


@pytest.mark.parametrize("generator", sorted(DATASETS.keys() - REFUSED.keys()))
def test_generator(generator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with time_limit(LIMIT_S, generator):
        source = opened(spec_of(generator), seed=5)
        prompts = [source.prompt(index) for index in PROMPTS]
        held_out = source.held_out()
    assert all(item.question.strip() and isinstance(item.answer, str) for item in prompts)
    assert not any(is_reserved(item.question) for item in prompts)
    assert all(is_reserved(item.question) for item in held_out)
    assert len({item.question for item in held_out}) == 2
    with time_limit(LIMIT_S, generator):
        again = opened(spec_of(generator), seed=5)
        assert [again.prompt(index) for index in reversed(PROMPTS)] == prompts[::-1]


@pytest.mark.parametrize("generator", sorted(REFUSED))
def test_refused_generators_say_why(generator: str) -> None:
    [error] = validate_domain(spec_of(generator))
    assert error.path == "generator"
    assert REFUSED[generator] in error.message


def test_the_lists_name_generators_that_exist() -> None:
    for names in (REFUSED.keys(), HASH_ORDERED, GLOBAL_RANDOM, NOISY):
        assert names <= DATASETS.keys()
    assert not HASH_ORDERED & REFUSED.keys()


def test_there_are_about_a_hundred() -> None:
    assert len(DATASETS.keys() - REFUSED.keys()) >= 98
