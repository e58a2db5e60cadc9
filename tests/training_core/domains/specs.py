"""Domains that the tests of this folder open."""

from __future__ import annotations

from typing import Any

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.rundir import RunDir
from training_core.domains.item import DomainSource
from training_core.domains.sources import open_domain

NOWHERE = RunDir("/nonexistent")


def addition(max_digits: int = 2, **changes: Any) -> ReasoningGymDomain:
    """Additions of two numbers: 121 questions with one digit, some 10,000 with two."""
    settings: dict[str, Any] = {
        "name": "math/add",
        "generator": "basic_arithmetic",
        "params": {
            "min_terms": 2,
            "max_terms": 2,
            "min_digits": 1,
            "max_digits": max_digits,
            "operators": ("+",),
            "allow_parentheses": False,
        },
        "held_out_items": 24,
    }
    return ReasoningGymDomain(**(settings | changes))


def opened(spec: ReasoningGymDomain, seed: int = 0) -> DomainSource:
    return open_domain(spec, NOWHERE, seed)
