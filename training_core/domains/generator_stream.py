"""Numbered questions of one reasoning-gym generator, split into a training and a held-out side.

Which side a question is on is decided by a hash of its text: a fixed quarter of all questions, the
same for every run, seed, setting and domain, is reserved for evaluation. So no training prompt ever
has the text of a held-out one, not even across two domains or two runs, and an item can be made
from its number alone. (`3 + 5` and `5 + 3` are two texts.) Used by `domains.reasoning_gym`.

Item `index` owns TRIES draws of a generator object that serves BLOCK items; a draw that lies on the
wrong side, or fails, is passed over. A block's seed is a hash of its name, so training draws of any
run seed and held-out draws come from disjoint seed ranges.
"""

from __future__ import annotations

import hashlib
import io
import random
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from reasoning_gym.factory import DATASETS

from training_core.contract.domains import GeneratorValue
from training_core.domains.generator_params import build_config
from training_core.domains.generator_quirks import GLOBAL_RANDOM, NOISY
from training_core.failures import BadData

BLOCK = 64
TRIES = 16
ROUNDS = 8
DRAWS = BLOCK * TRIES
MAX_FAILURES = 20
OPEN_BLOCKS = 4
RESERVED_IN_256 = 64
_HALF = 2**31


class Question(NamedTuple):
    """One draw of a generator."""

    text: str
    answer: str
    seed: int
    """Seed of the generator object."""
    draw: int
    """Position in it: `create_dataset(name, seed=seed, size=DRAWS)[draw]` makes it again."""


def is_reserved(text: str) -> bool:
    """Whether a question belongs to the held-out side; white space does not matter."""
    digest = hashlib.blake2b(" ".join(text.split()).encode(), digest_size=1).digest()
    return digest[0] < RESERVED_IN_256


class GeneratorStream:
    """Draws of one generator with one set of settings."""

    def __init__(self, generator: str, params: Mapping[str, GeneratorValue], salt: str) -> None:
        self.generator = generator
        self._params = params
        self._salt = salt
        self._blocks: OrderedDict[int, Any] = OrderedDict()

    def training(self, index: int) -> Question:
        """The index-th training question. Raises BadData where the space is exhausted."""
        block, place = divmod(index, BLOCK)
        failures = 0
        for round_number in range(ROUNDS):
            seed = _seed(f"train|{self._salt}|{block}|{round_number}")
            for draw in range(place * TRIES, (place + 1) * TRIES):
                question = self._draw(seed, draw)
                if isinstance(question, Exception):
                    failures = self._count_failure(failures, question)
                elif is_reserved(question.text):
                    failures = 0
                else:
                    return question
        raise BadData(
            f"The generator {self.generator!r} makes no question that is free for training:"
            " all of its questions are reserved for evaluation.",
            "Widen its settings so that it can make more questions.",
        )

    def held_out_draws(self) -> Iterator[Question | None]:
        """Endless draws for the held-out side: a reserved question, or None for any other draw."""
        failures = block = 0
        while True:
            seed = _HALF + _seed(f"held out|{self.generator}|{block}")
            for draw in range(DRAWS):
                question = self._draw(seed, draw)
                if isinstance(question, Exception):
                    failures = self._count_failure(failures, question)
                    yield None
                else:
                    failures = 0
                    yield question if is_reserved(question.text) else None
            block += 1

    def _draw(self, seed: int, draw: int) -> Question | Exception:
        """One draw, or the exception that it raised. A generator object that raised is dropped,
        since some of them then refuse all later draws."""
        try:
            with _isolated(self.generator, seed + draw):
                entry = self._block(seed)[draw]
        except Exception as error:
            self._blocks.pop(seed, None)
            return error
        if not isinstance(entry["answer"], str):
            raise BadData(
                f"The generator {self.generator!r} gives no single right answer.",
                "Choose another generator.",
            )
        return Question(str(entry["question"]), entry["answer"], seed, draw)

    def _block(self, seed: int) -> Any:
        """The generator object of a seed; the few used last stay open."""
        if seed in self._blocks:
            self._blocks.move_to_end(seed)
            return self._blocks[seed]
        dataset_class, config_class = DATASETS[self.generator]
        made = dataset_class(build_config(config_class, self._params, seed, DRAWS))
        self._blocks[seed] = made
        if len(self._blocks) > OPEN_BLOCKS:
            self._blocks.popitem(last=False)
        return made

    def _count_failure(self, failures: int, error: Exception) -> int:
        """Give up after too many failed draws in a row."""
        if failures + 1 >= MAX_FAILURES:
            raise BadData(
                f"The generator {self.generator!r} failed {MAX_FAILURES} times in a row:"
                f" {type(error).__name__}: {str(error).rstrip('.')}.",
                "Change its settings.",
            ) from error
        return failures + 1


def _seed(name: str) -> int:
    """A seed below 2**31 - DRAWS from a name."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (_HALF - DRAWS)


@contextmanager
def _isolated(generator: str, seed: int) -> Iterator[None]:
    """Keep generators that use process-wide state from seeing it or leaving traces in it."""
    with ExitStack() as stack:
        if generator in NOISY:
            stack.enter_context(redirect_stdout(io.StringIO()))
        if generator in GLOBAL_RANDOM:
            stack.callback(random.setstate, random.getstate())
            stack.callback(np.random.set_state, np.random.get_state())
            random.seed(seed)
        yield
