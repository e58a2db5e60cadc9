"""Are loss and gradient those of TRL, on the same tensors?

    python benchmarks/parity_trl.py [--quick]

For each mode and seed a batch is drawn: ragged completions, ratios from 0.2 to 4, advantages of
both signs, a reference, a weight of the divergence above 0. TRL's own `_compute_loss` (in a
virtualenv of its own) and `training_core.losses` compute loss and gradient with regard to every
log-probability, in float64. `--quick` takes 40 seeds instead of 200.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from peer_env import run_peer
from safetensors.torch import load_file, save_file

from training_core.contract.algorithms import (
    CispoSpec,
    DapoSpec,
    DivergenceSpec,
    DrGrpoSpec,
    GroupRelativeSpec,
    GrpoSpec,
    GspoSpec,
    RlooSpec,
)
from training_core.losses.policy_loss import TokenInputs, policy_loss
from training_core.losses.reduction import Window

Case = dict[str, torch.Tensor]
BETA = 0.04
K3 = DivergenceSpec(coefficient=BETA)
WEIGHTED = DivergenceSpec(coefficient=BETA, importance_weighted=True)
MODES: dict[str, GroupRelativeSpec] = {
    "grpo": GrpoSpec(reduction="sequence_mean", divergence=K3),
    "dapo": DapoSpec(divergence=K3),
    "dr_grpo": DrGrpoSpec(divergence=K3),
    "cispo": CispoSpec(divergence=K3),
    "gspo": GspoSpec(divergence=K3),
    "rloo": RlooSpec(),
    "dapo_delta": DapoSpec(divergence=K3, dual_clip=1.5),
    "dapo_weighted_kl": DapoSpec(clip_high=0.2, divergence=WEIGHTED),
    "dapo_entropy": DapoSpec(clip_high=0.2, divergence=K3, entropy_coefficient=0.05),
}
"""Our spec of each mode of `benchmarks/peers/trl_loss.py`."""
TOLERANCE = 1e-5


def draw_case(mode: str, seed: int) -> Case:
    """Six completions of 1 to 12 tokens. In mode rloo ratios belong to completions, so tokens move
    less."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    lengths = torch.randint(1, 13, (6,), generator=generator)
    mask = (torch.arange(12) < lengths[:, None]).double()
    logprobs = -3 * uniform(6, 12) - 0.05
    low, high = (torch.tensor(ratio, dtype=torch.float64).log() for ratio in (0.2, 4.0))
    moved = low + (high - low) * uniform(6, 12)
    if mode == "rloo":
        moved = moved / lengths[:, None]
    return {
        "logprobs": logprobs,
        "old": logprobs - moved,
        "reference": logprobs - (uniform(6, 12) - 0.5) * 2,
        "advantages": (uniform(6) + 0.1) * torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]),
        "mask": mask,
        "longest": torch.tensor(16),
        "beta": torch.tensor(BETA, dtype=torch.float64),
    }


def solve(spec: GroupRelativeSpec, case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Our loss, and its gradient in the shape of the case."""
    mask = case["mask"].bool()
    lengths_B = mask.sum(1)
    logprobs = case["logprobs"].clone().requires_grad_()
    now_N = logprobs[mask]
    tokens = TokenInputs(
        logprobs_N=now_N,
        old_N=case["old"][mask],
        sampler_N=case["old"][mask],
        advantages_N=case["advantages"].repeat_interleave(lengths_B),
        lengths_B=lengths_B,
        reference_N=case["reference"][mask] if spec.divergence.is_in("loss") else None,
        entropy_N=now_N.square(),
    )
    window = Window(float(lengths_B.sum()), float(len(lengths_B)))
    weights_B = torch.tensor(
        [
            window.token_weight(spec.reduction, int(length), int(case["longest"]))
            for length in lengths_B
        ],
        dtype=torch.float64,
    )
    losses_N = policy_loss(spec, BETA, tokens).loss_N
    loss = (losses_N * weights_B.repeat_interleave(lengths_B)).sum()
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient


def compare(seeds: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Largest difference of loss and of gradient, for each mode."""
    cases = {(mode, seed): draw_case(mode, seed) for mode in MODES for seed in range(seeds)}
    save_file(
        {
            f"{mode}/{seed}/{name}": tensor.contiguous()
            for (mode, seed), case in cases.items()
            for name, tensor in case.items()
        },
        folder / "cases.safetensors",
    )
    paths = [str(folder / name) for name in ("cases.safetensors", "found.safetensors")]
    run_peer("trl", "trl_loss.py", *paths)
    theirs = load_file(paths[1])
    worst = dict.fromkeys(MODES, (0.0, 0.0))
    for (mode, seed), case in cases.items():
        loss, gradient = solve(MODES[mode], case)
        apart = float((loss - theirs[f"{mode}/{seed}/loss"]).abs().max())
        sloped = float((gradient - theirs[f"{mode}/{seed}/gradient"]).abs().max())
        worst[mode] = max(worst[mode][0], apart), max(worst[mode][1], sloped)
    return worst


def main() -> None:
    """Compare, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="40 seeds instead of 200")
    quick = parser.parse_args().quick
    seeds = 40 if quick else 200
    with tempfile.TemporaryDirectory() as folder:
        worst = compare(seeds, Path(folder))
    print(f"{'mode':<20}{'loss':>12}{'gradient':>12}   largest differences over {seeds} seeds")
    for mode, (loss, gradient) in worst.items():
        print(f"{mode:<20}{loss:>12.1e}{gradient:>12.1e}")
    largest = max(max(pair) for pair in worst.values())
    result = {
        "quick": quick,
        "max_abs_diff": largest,
        "modes": list(MODES),
        "seeds": seeds,
        "within_tolerance": largest <= TOLERANCE,
    }
    print("RESULT " + json.dumps(result))
    if largest > TOLERANCE:
        raise SystemExit(f"A loss or gradient differs by {largest:.1e}.")


if __name__ == "__main__":
    main()
