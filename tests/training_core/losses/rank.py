"""One of two processes that share an optimiser window; run by `test_two_processes`.

Its share of the rows, the window's divisor and the summed gradient go through accelerate's process
group, as they do in a run over several GPUs.
"""

from __future__ import annotations

import os
import sys
from typing import cast

import torch
from accelerate import Accelerator
from safetensors.torch import save_file

from tests.training_core.algorithms.rows import learner_of, ragged_rows
from tests.training_core.models.policies import build_policy
from training_core.algorithms.update import UpdateSettings, window_gradient
from training_core.contract.algorithms import DivergenceSpec, GrpoSpec, Reduction
from training_core.losses.reduction import sum_gradients

REDUCTIONS: tuple[Reduction, ...] = ("token_mean", "sequence_mean", "constant")
DIVERGENCE = DivergenceSpec(coefficient=0.1)


def gradient_of(accelerator: Accelerator, reduction: Reduction) -> dict[str, torch.Tensor]:
    """The window's gradient by name, after this process has done its share.

    In float64, with everything that the divisor serves: surrogate, divergence, entropy.
    """
    spec = GrpoSpec(reduction=reduction, divergence=DIVERGENCE, entropy_coefficient=0.01)
    policy = build_policy(dtype=torch.float64)
    rows = ragged_rows(policy)
    # Two of five: uneven in sequences and in tokens.
    own = rows[accelerator.process_index :: accelerator.num_processes]
    settings = UpdateSettings(spec, 0.7, longest=12, max_grad_norm=1.0, coefficient=0.1)
    window_gradient(learner_of(policy, accelerator), own, settings)
    sum_gradients(accelerator, policy.parameters())
    found = {name: weight.grad for name, weight in policy.model.named_parameters()}
    return cast(dict[str, torch.Tensor], found)


def main(target: str) -> None:
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    for reduction in REDUCTIONS:
        found = gradient_of(accelerator, reduction)
        save_file(found, f"{target}.{reduction}.{accelerator.process_index}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1])
