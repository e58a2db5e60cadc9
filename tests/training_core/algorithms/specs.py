"""Every named algorithm, and choices that none of them makes."""

from __future__ import annotations

import pytest

from training_core.contract.algorithms import (
    CispoSpec,
    CorrectionSpec,
    DapoSpec,
    DivergenceSpec,
    DrGrpoSpec,
    GroupRelativeSpec,
    GrpoSpec,
    GspoSpec,
    ReinforcePlusPlusBaselineSpec,
    ReinforcePlusPlusSpec,
    RlooSpec,
)

NAMED: dict[str, GroupRelativeSpec] = {
    "grpo": GrpoSpec(),
    "dr_grpo": DrGrpoSpec(),
    "dapo": DapoSpec(),
    "gspo": GspoSpec(),
    "cispo": CispoSpec(),
    "rloo": RlooSpec(),
    "reinforce_plus_plus": ReinforcePlusPlusSpec(),
    "reinforce_plus_plus_baseline": ReinforcePlusPlusBaselineSpec(),
}
OTHERS: dict[str, GroupRelativeSpec] = {
    "reinforce": GrpoSpec(surrogate="reinforce", reduction="constant"),
    "dual clip": GrpoSpec(dual_clip=1.5, reduction="sequence_mean"),
    "sequence cispo": CispoSpec(ratio="sequence", clip_low=0.1, clip_high=0.1),
    "k1 weighed": GrpoSpec(
        divergence=DivergenceSpec(coefficient=0.2, estimator="k1", importance_weighted=True)
    ),
    "k3": DrGrpoSpec(divergence=DivergenceSpec(coefficient=0.3)),
    "k3 weighed": GspoSpec(
        divergence=DivergenceSpec(coefficient=0.1, estimator="k3", importance_weighted=True)
    ),
    "entropy": GrpoSpec(entropy_coefficient=0.05),
    "token weights": GrpoSpec(correction=CorrectionSpec(level="token", cap=1.2)),
    "sequence weights": DapoSpec(correction=CorrectionSpec(level="sequence", cap=1.5)),
    "everything": GrpoSpec(
        ratio="sequence",
        dual_clip=2.0,
        reduction="sequence_mean",
        divergence=DivergenceSpec(coefficient=0.1, estimator="k2", importance_weighted=True),
        entropy_coefficient=0.02,
        correction=CorrectionSpec(level="token"),
    ),
}
SPECS = NAMED | OTHERS
each_algorithm = pytest.mark.parametrize("spec", NAMED.values(), ids=list(NAMED))
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=list(SPECS))
