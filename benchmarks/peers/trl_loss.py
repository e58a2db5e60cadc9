"""TRL's own loss code on given tensors. Run by `benchmarks/parity_trl.py` in TRL's virtualenv.

    python trl_loss.py CASES FOUND

CASES is a safetensors file of cases `MODE/SEED/NAME`; FOUND gets `MODE/SEED/loss` and
`MODE/SEED/gradient`, the latter with regard to the policy's log-probabilities. The trainers are the
real ones without their start-up: `_compute_loss` is called as it stands, only the model's forward
pass is replaced by the log-probabilities of the case.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

GRPO = {"epsilon_low": 0.2, "epsilon_high": 0.2, "importance_sampling_level": "token"}
MODES = {
    "grpo": {**GRPO, "loss_type": "grpo"},
    "dapo": {**GRPO, "loss_type": "dapo", "epsilon_high": 0.28},
    "dr_grpo": {**GRPO, "loss_type": "dr_grpo"},
    "cispo": {**GRPO, "loss_type": "cispo", "epsilon_high": 5.0},
    "gspo": {
        "loss_type": "grpo",
        "epsilon_low": 3e-4,
        "epsilon_high": 4e-4,
        "importance_sampling_level": "sequence",
    },
    "dapo_delta": {**GRPO, "loss_type": "dapo", "epsilon_high": 0.28, "delta": 1.5},
    "dapo_weighted_kl": {**GRPO, "loss_type": "dapo", "use_bias_correction_kl": True},
    "dapo_entropy": {**GRPO, "loss_type": "dapo", "entropy_coef": 0.05},
}


def trainer_of(kind: type, case: dict[str, torch.Tensor], **settings: object) -> object:
    """A trainer with exactly what its loss reads."""
    trainer = kind.__new__(kind)
    trainer.accelerator = ACCELERATOR
    trainer.model = SimpleNamespace(training=True)
    trainer.aux_loss_enabled = False
    trainer._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
    trainer.args = SimpleNamespace(
        delta=settings.pop("delta", None),
        use_bias_correction_kl=settings.pop("use_bias_correction_kl", False),
        steps_per_generation=1,
    )
    trainer.entropy_coef = settings.pop("entropy_coef", 0.0)
    trainer._entropy_bonus_enabled = trainer.entropy_coef > 0
    trainer.use_adaptive_entropy = False
    trainer.top_entropy_quantile = 1.0
    trainer.off_policy_mask_threshold = None
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = False
    trainer.current_gradient_accumulation_steps = 1
    trainer.max_completion_length = int(case["longest"])
    trainer.beta = float(case["beta"])
    for name, value in settings.items():
        setattr(trainer, name, value)
    return trainer


def solve(mode: str, case: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss, and its gradient."""
    logps = case["logprobs"].requires_grad_()
    mask = case["mask"]
    if mode == "rloo":
        trainer = trainer_of(RLOOTrainer, case, epsilon_low=0.2, epsilon_high=0.2)
    else:
        trainer = trainer_of(GRPOTrainer, case, **MODES[mode])
    # The entropies move with the log-probabilities here, so that their gradient is compared too.
    entropies = logps.square()
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logps, entropies, None)
    ids = torch.zeros_like(mask, dtype=torch.long)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": torch.ones_like(ids[:, :1]),
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": case["advantages"],
        "old_per_token_logps": case["old"],
        "old_logps": (case["old"] * mask).sum(1),
        "ref_per_token_logps": case["reference"],
        "num_items_in_batch": mask.sum(),
    }
    loss = trainer._compute_loss(trainer.model, inputs)
    (gradient,) = torch.autograd.grad(loss, logps)
    return loss.detach(), gradient


def main(cases: str, found: str) -> None:
    """Solve all cases of a file."""
    grouped: dict[tuple[str, str], dict[str, torch.Tensor]] = defaultdict(dict)
    for path, tensor in load_file(cases).items():
        mode, seed, name = path.split("/")
        grouped[mode, seed][name] = tensor
    results = {}
    for (mode, seed), case in grouped.items():
        loss, gradient = solve(mode, case)
        results[f"{mode}/{seed}/loss"] = loss.reshape(1)
        results[f"{mode}/{seed}/gradient"] = gradient.contiguous()
    save_file(results, found)


if __name__ == "__main__":
    ACCELERATOR = Accelerator(cpu=True)
    main(*sys.argv[1:])
