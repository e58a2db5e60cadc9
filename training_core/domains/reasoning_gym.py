"""The reasoning_gym domain: prompts from one of about a hundred generators, offline and endless.

Opened and checked through `training_core.domains.sources`. Importing this module imports every
generator (one second). Which generators are refused, and why, stands in `generator_quirks`; how
training and held-out questions are kept apart, in `generator_stream`.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import time
from collections.abc import Sequence

from reasoning_gym.factory import DATASETS

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.field_errors import FieldError
from training_core.contract.rundir import RunDir
from training_core.domains.generator_params import ParamsRefused, build_config
from training_core.domains.generator_quirks import HASH_ORDERED, REFUSED
from training_core.domains.generator_stream import DRAWS, GeneratorStream, Question
from training_core.domains.item import PromptItem
from training_core.domains.templates import chat_prompt, fill
from training_core.failures import BadData

PATIENCE = 400
"""Draws without a new held-out question after which there are taken to be no more."""
PROBE_S = 0.5
"""Longest time that a check at launch spends on sampling a slow generator."""


class ReasoningGymSource:
    """An opened generator. Implements `domains.item.DomainSource`."""

    def __init__(self, spec: ReasoningGymDomain, seed: int) -> None:
        self._spec = spec
        self._stream = GeneratorStream(
            spec.generator, spec.params, salt=f"{seed}|{spec.name}|{spec.generator}"
        )

    def prompt(self, index: int) -> PromptItem:
        """The index-th training prompt: a function of (seed, domain, index) alone."""
        return self._item(self._stream.training(index), index)

    def held_out(self) -> list[PromptItem]:
        """The first `held_out_items` reserved questions, the same for every seed."""
        questions, exhausted = collect_held_out(self._stream, self._spec.held_out_items)
        if exhausted:
            raise BadData(
                f"Domain {self._spec.name}: {_too_few(len(questions), self._spec)}",
                "Ask for fewer held-out items or widen the generator's settings.",
            )
        return [self._item(question, place) for place, question in enumerate(questions)]

    def demonstration(self, item: PromptItem) -> str:
        """The spec's template with question and answer filled in."""
        template = self._spec.demonstration_template
        return fill(template, question=item.question, answer=item.answer)

    def _item(self, question: Question, index: int) -> PromptItem:
        """A drawn question as a prompt."""
        identity = f"{self._spec.generator}\0{question.text}\0{question.answer}".encode()
        user = fill(self._spec.question_template, question=question.text)
        return PromptItem(
            prompt_id=hashlib.sha256(identity).hexdigest()[:16],
            domain=self._spec.name,
            messages=chat_prompt(self._spec.system_prompt, user),
            question=question.text,
            answer=question.answer,
            metadata={
                "generator": self._spec.generator,
                "index": index,
                "seed": question.seed,
                "draw": question.draw,
            },
        )


def open_domain(spec: ReasoningGymDomain, run_dir: RunDir, seed: int) -> ReasoningGymSource:
    """Open the generator for a run. Raises BadData with a sentence and an advice."""
    del run_dir
    if spec.generator in HASH_ORDERED and not os.environ.get("PYTHONHASHSEED", "").isdecimal():
        raise BadData(
            f"Questions of the generator {spec.generator!r} repeat only under a fixed hash seed.",
            "Start the trainer with PYTHONHASHSEED=0 in its environment.",
        )
    errors = _generator_errors(spec) or _params_errors(spec)
    if errors:
        first = errors[0]
        raise BadData(f"Domain {spec.name}: {first.path}: {first.message}", "Correct the domain.")
    return ReasoningGymSource(spec, seed)


def validate_domain(spec: ReasoningGymDomain) -> list[FieldError]:
    """What is wrong with the domain, with paths inside it. Samples the generator for a moment."""
    errors = []
    if "{question}" not in spec.question_template:
        errors.append(FieldError("question_template", "Must contain {question}."))
    errors += _generator_errors(spec) or _params_errors(spec)
    return errors or _sampling_errors(spec)


def collect_held_out(
    stream: GeneratorStream, wanted: int, limit_s: float | None = None
) -> tuple[Sequence[Question], bool]:
    """The first distinct reserved questions, and whether there are fewer than wanted.

    With a time limit the search may end early; it then does not claim that there are too few.
    """
    found: dict[str, Question] = {}
    since_new = 0
    begin = time.monotonic()
    for question in stream.held_out_draws():
        key = " ".join(question.text.split()) if question else ""
        since_new += 1
        if question and key not in found:
            found[key] = question
            since_new = 0
        if len(found) == wanted:
            break
        if since_new >= PATIENCE:
            return list(found.values()), True
        if limit_s is not None and time.monotonic() - begin > limit_s:
            break
    return list(found.values()), False


def _generator_errors(spec: ReasoningGymDomain) -> list[FieldError]:
    """A generator that does not exist or cannot be used."""
    if spec.generator in REFUSED:
        reason = f"{spec.generator!r} cannot be used: {REFUSED[spec.generator]}."
        return [FieldError("generator", reason)]
    if spec.generator in DATASETS:
        return []
    usable = sorted(DATASETS.keys() - REFUSED.keys())
    close = difflib.get_close_matches(spec.generator, usable, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return [FieldError("generator", f"There is no generator {spec.generator!r}.{hint}")]


def _params_errors(spec: ReasoningGymDomain) -> list[FieldError]:
    """Settings that the generator does not take."""
    try:
        build_config(DATASETS[spec.generator][1], spec.params, 0, DRAWS)
    except ParamsRefused as refused:
        return refused.errors
    return []


def _sampling_errors(spec: ReasoningGymDomain) -> list[FieldError]:
    """Settings that are allowed but make no question, or too few different ones."""
    stream = GeneratorStream(spec.generator, spec.params, salt=f"0|{spec.name}|{spec.generator}")
    try:
        stream.training(0)
        found, exhausted = collect_held_out(stream, spec.held_out_items, PROBE_S)
    except BadData as error:
        return [FieldError("params", f"{error.message} {error.advice}")]
    return [FieldError("held_out_items", _too_few(len(found), spec))] if exhausted else []


def _too_few(found: int, spec: ReasoningGymDomain) -> str:
    """Why the held-out side is too small."""
    advice = f"ask for at most {found}" if found >= 2 else "widen the generator's settings"
    return (
        f"{spec.held_out_items} held-out items were asked for, but the generator with these"
        f" settings has only {found} questions on the held-out side (a quarter of all its"
        f" questions); {advice}."
    )
