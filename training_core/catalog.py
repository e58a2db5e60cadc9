"""The catalogue: which function serves which `type` of a spec. Plain dicts, torch-free.

Read by `rewards.tree` and `domains.sources`. To add a reward or a domain, write its file, add its
member to the contract and a line here; nothing registers itself by being imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from training_core.contract.field_errors import FieldError
from training_core.domains import dataset, reasoning_gym
from training_core.domains.item import DomainSource
from training_core.rewards.completion import LeafScore
from training_core.rewards.correctness import score_correctness
from training_core.rewards.format import score_format
from training_core.rewards.length import score_length
from training_core.rewards.match import score_match


class DomainKind(NamedTuple):
    """How one kind of domain is opened and checked."""

    open: Callable[..., DomainSource]
    """(spec, run directory, seed) to a source."""
    validate: Callable[..., list[FieldError]]
    """Spec to what is wrong with it, with paths inside the domain."""


REWARDS: dict[str, Callable[[Any, Any], LeafScore]] = {
    "correctness": score_correctness,
    "format": score_format,
    "length": score_length,
    "match": score_match,
}

DOMAINS: dict[str, DomainKind] = {
    "reasoning_gym": DomainKind(reasoning_gym.open_domain, reasoning_gym.validate_domain),
    "dataset": DomainKind(dataset.open_domain, dataset.validate_domain),
}
