"""Generators that fail, hang back or use process-wide state, through small stand-ins for them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from reasoning_gym.factory import DATASETS

from training_core.domains.generator_quirks import HASH_ORDERED
from training_core.domains.generator_stream import GeneratorStream, is_reserved
from training_core.failures import BadData

RESERVED = next(text for text in map(str, range(100)) if is_reserved(text))
FREE = next(text for text in map(str, range(100)) if not is_reserved(text))


@dataclass
class Config:
    seed: int | None = None
    size: int = 500


class Scripted:
    """A generator whose draws are answered by a function of the place."""

    draw: Any = None

    def __init__(self, config: Config) -> None:
        self.config = config

    def __getitem__(self, place: int) -> dict[str, Any]:
        result = type(self).draw(self, place)
        if isinstance(result, Exception):
            raise result
        return {"question": result, "answer": "1", "metadata": {}}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Register a generator `scripted` that draws by the given function."""

    def register(draw: Any) -> GeneratorStream:
        monkeypatch.setattr(Scripted, "draw", staticmethod(draw))
        monkeypatch.setitem(DATASETS, "scripted", (Scripted, Config))
        return GeneratorStream("scripted", {}, salt="s")

    return register


def test_a_failed_draw_is_passed_over_and_the_generator_made_anew(script: Any) -> None:
    """word_ladder refuses every draw after one failure; a fresh object does not."""

    def draw(self: Any, place: int) -> Any:
        if getattr(self, "broken", False) or place % 16 == 0:
            self.broken = True
            return RuntimeError("exhausted")
        return f"{FREE} {place}" if not is_reserved(f"{FREE} {place}") else FREE

    stream = script(draw)
    assert [stream.training(index).draw for index in range(3)] == [1, 17, 33]


def test_a_generator_that_always_fails_says_why(script: Any) -> None:
    stream = script(lambda *_: ValueError("no words of that length"))
    with pytest.raises(BadData, match="ValueError: no words of that length"):
        stream.training(0)
    with pytest.raises(BadData, match="failed 20 times in a row"):
        list(stream.held_out_draws())


def test_a_space_that_is_reserved_whole_says_so(script: Any) -> None:
    stream = script(lambda *_: RESERVED)
    with pytest.raises(BadData, match="all of its questions are reserved"):
        stream.training(0)


def test_an_answer_that_is_no_text_is_refused(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = script(lambda *_: FREE)
    entry = {"question": FREE, "answer": None, "metadata": {}}
    monkeypatch.setattr(Scripted, "__getitem__", lambda *_: entry)
    with pytest.raises(BadData, match="no single right answer"):
        stream.training(0)


@pytest.mark.parametrize("generator", ["list_functions", "pool_matrix"])
def test_process_wide_random_state_is_neither_read_nor_left_changed(generator: str) -> None:
    def questions(disturb: int) -> list[str]:
        random.seed(disturb)
        np.random.seed(disturb)
        before = random.getstate(), np.random.get_state()[1].tolist()
        stream = GeneratorStream(generator, {}, salt="s")
        found = [stream.training(index).text for index in range(60)]
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before
        return found

    assert questions(1) == questions(2)


def test_a_noisy_generator_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    stream = GeneratorStream("bf", {}, salt="s")
    stream.training(0)
    assert capsys.readouterr().out == ""


def test_few_generator_objects_stay_open() -> None:
    stream = GeneratorStream("chain_sum", {}, salt="s")
    for index in range(0, 64 * 20, 64):
        stream.training(index)
    assert len(stream._blocks) <= 4


IN_ANOTHER_PROCESS = """
import sys
from training_core.domains.generator_stream import GeneratorStream
for generator in sys.argv[1:]:
    stream = GeneratorStream(generator, {}, salt="s")
    print(generator, [stream.training(index)[:2] for index in range(4)])
"""


def questions_under(hash_seed: int, generators: Iterable[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, *generators],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_questions_repeat_in_another_process() -> None:
    """Hash-ordered generators under the same hash seed, the others under any."""
    sensitive = sorted(HASH_ORDERED - {"knight_swap"})
    others = ["basic_arithmetic", "chain_sum", "gsm_symbolic", "family_relationships", "acre"]
    runs = [questions_under(0, [*sensitive, *others]) for _ in range(2)]
    runs.append(questions_under(1, others))
    same, again, other = [run.communicate(timeout=120)[0].splitlines() for run in runs]
    assert len(same) == len(sensitive) + len(others)
    assert same == again
    assert same[len(sensitive) :] == other
