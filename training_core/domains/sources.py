"""Opening and checking a domain of any kind. The trainer, the evaluator and the launch check come
in here; the kinds stand in `training_core.catalog`.
"""

from __future__ import annotations

from training_core.catalog import DOMAINS
from training_core.contract.domains import DomainSpec, ReasoningGymDomain
from training_core.contract.field_errors import FieldError
from training_core.contract.rewards import RewardSpec
from training_core.contract.rundir import RunDir
from training_core.domains.item import DomainSource
from training_core.failures import BadData
from training_core.rewards.gold import gold_faults

SAMPLED_ANSWERS = 8


def open_domain(spec: DomainSpec, run_dir: RunDir, seed: int) -> DomainSource:
    """Open a domain of a run. Raises `failures.BadData` with a sentence and an advice."""
    return DOMAINS[spec.type].open(spec, run_dir, seed)


def validate_domain(spec: DomainSpec) -> list[FieldError]:
    """What is wrong with a domain, with paths inside it such as `params.min_digits`."""
    return DOMAINS[spec.type].validate(spec)


def validate_answers(spec: DomainSpec, reward: RewardSpec) -> list[FieldError]:
    """Whether the rewards can use a generator's answers; call it for a domain without errors.

    Answers of datasets lie in the database: give those to `rewards.gold.gold_faults`.
    """
    if not isinstance(spec, ReasoningGymDomain):
        return []
    try:
        source = DOMAINS[spec.type].open(spec, RunDir(""), 0)
        answers = [source.prompt(index).answer for index in range(SAMPLED_ANSWERS)]
    except BadData:
        return []
    return [
        FieldError(
            "generator",
            f"The reward {fault.reward!r} cannot use the answers of {spec.generator!r}:"
            f" {fault.explanation} ({fault.bad} of {SAMPLED_ANSWERS} sampled).",
        )
        for fault in gold_faults(reward, answers)
        if fault.bad > SAMPLED_ANSWERS // 2
    ]
