"""One of two processes that share an optimiser window; run by `test_two_processes`.

Its share of the sequences, the window's divisor and the summed gradient go through accelerate's
process group, as they do in a run over several GPUs.
"""

from __future__ import annotations

import os
import sys

import torch
from accelerate import Accelerator
from safetensors.torch import save_file

from tests.training_core.models.policies import build_policy, make_sequences
from training_core.algorithms.learner import Learner
from training_core.losses.reduction import sum_gradients, window_divisor
from training_core.models.logprobs import TokenLogprobs
from training_core.models.packing import PackedBatch

SHAPES = [(5, 4), (12, 9), (3, 1), (8, 6), (4, 2)]


def no_progress(done: int, total: int, *, may_abandon: bool) -> None:
    """Nobody watches."""


def negative_logprob(_: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, None]:
    return -found.logprobs_N, None


def window_gradient(accelerator: Accelerator) -> dict[str, torch.Tensor]:
    """The window's gradient by name, after this process has done its share."""
    sequences = make_sequences(*SHAPES)
    # Two of five: uneven in sequences and in tokens.
    own = sequences[accelerator.process_index :: accelerator.num_processes]
    policy = build_policy()
    learner = Learner(policy, accelerator, 8192, no_progress)
    divisor = window_divisor(accelerator, sum(len(s.completion_ids) for s in own))
    learner.accumulate(own, negative_logprob, divisor_tokens=divisor)
    sum_gradients(accelerator, policy.parameters())
    return {name: w.grad for name, w in policy.model.named_parameters() if w.grad is not None}


def main(target: str) -> None:
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    save_file(window_gradient(accelerator), f"{target}.{accelerator.process_index}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1])
