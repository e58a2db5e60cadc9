"""What does it gain to compute equal beginnings once, in sampling and in training?

    python benchmarks/shared_beginnings.py [--quick]

Takes the model, the prompts and the group size of the preset "Teach SmolLM2 to add" after a few
supervised steps, so that it answers in its tag. Samples the groups of some RL steps and follows
their gradient, both ways in turn in one process: with rows as trees, and with a row for each
completion, as if nothing were shared but the prompt's first reading. Completions that part by
rounding are told; gradients that differ by more than rounding end it without a result. `--quick`
takes fewer steps and prompts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from training_core.models.processor import use_large_pages, use_repeatable_products

use_repeatable_products()
use_large_pages()

import torch  # noqa: E402 - after what its libraries must be told
from accelerate import Accelerator  # noqa: E402

from training_core.algorithms.learner import Learner  # noqa: E402
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD  # noqa: E402
from training_core.contract.rundir import RunDir  # noqa: E402
from training_core.contract.spec import RunSpec  # noqa: E402
from training_core.contract.stages import RlStage, SftStage  # noqa: E402
from training_core.domains.item import DomainSource  # noqa: E402
from training_core.domains.sources import open_domain  # noqa: E402
from training_core.gather import MOST_ROWS_CPU  # noqa: E402
from training_core.launch import open_policy  # noqa: E402
from training_core.models.chat import prompt_ids  # noqa: E402
from training_core.models.logprobs import TokenLogprobs  # noqa: E402
from training_core.models.optimiser import build_optimiser  # noqa: E402
from training_core.models.packing import PackedBatch, TokenSequence  # noqa: E402
from training_core.models.policy import Policy  # noqa: E402
from training_core.rollouts import engine, tree  # noqa: E402
from training_core.sft import demonstration_sequence, imitate  # noqa: E402

MODELS_DIR = Path(__file__).resolve().parents[1] / "var" / "models"
GRADIENT_TOLERANCE = 1e-3


def one_row_each(rows_A: torch.Tensor, tokens_A: torch.Tensor, *, rows: int) -> tree.RowPlan:
    """The other side: completions get rows of their own at their first token."""
    if len(rows_A.unique()) < len(rows_A):
        places_A = torch.arange(len(rows_A))
        return tree.RowPlan(places_A, tokens_A, rows_A, moves=True)
    return tree.plan_rows(rows_A, tokens_A, rows=rows)


def teach_the_tag(learner: Learner, source: DomainSource, stage: SftStage, steps: int) -> None:
    """Supervised steps, as in the preset's first stage."""
    optimiser = build_optimiser(stage.optimiser, learner.policy.parameters())
    for step in range(steps):
        items = [
            source.prompt(step * stage.batch_size + place) for place in range(stage.batch_size)
        ]
        sequences = [
            demonstration_sequence(learner.policy, item.messages, source.demonstration(item))
            for item in items
        ]
        imitate(learner, optimiser, sequences, stage.optimiser.max_grad_norm)


def requests_of(
    policy: Policy, source: DomainSource, stage: RlStage, step: int
) -> list[engine.Request]:
    """The prompts of an RL step."""
    first = 1000 + step * stage.prompts_per_step
    return [
        engine.Request(
            prompt_ids(policy.tokenizer, source.prompt(first + place).messages),
            tuple(
                range((first + place) * stage.group_size, (first + place + 1) * stage.group_size)
            ),
        )
        for place in range(stage.prompts_per_step)
    ]


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds and result."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def gradient(
    learner: Learner, sequences: Sequence[TokenSequence], share: bool
) -> list[torch.Tensor]:
    """Gradient of the mean log-probability over all tokens of the sequences."""
    policy = learner.policy
    for replica in policy.replicas:
        replica.facts = dataclasses.replace(replica.facts, shared_prompts=share)

    def loss(_: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, int]:
        return found.logprobs_N / tokens, len(found.logprobs_N)

    tokens = sum(len(sequence.completion_ids) for sequence in sequences)
    learner.accumulate(sequences, loss)
    found = [weight.grad for weight in policy.parameters() if weight.grad is not None]
    policy.clear_gradients()
    return found


def measure(learner: Learner, source: DomainSource, stage: RlStage, steps: int) -> dict[str, float]:
    """Seconds of both sides over some steps, turn and turn about; the first step is not counted."""
    policy = learner.policy
    settings = engine.GenerationSettings(
        stage.sampling.max_new_tokens, stage.sampling.temperature, MOST_ROWS_CPU
    )
    seconds = dict.fromkeys(("rollout_tree", "rollout_rows", "update_tree", "update_rows"), 0.0)
    worst = 0.0
    for step in range(steps + 1):
        requests = requests_of(policy, source, stage, step)
        sides: dict[str, tuple[float, object]] = {}
        for side, planner in (("tree", tree.plan_rows), ("rows", one_row_each)):
            engine.plan_rows = planner
            sides[f"rollout_{side}"] = timed(
                lambda r=requests: engine.generate(policy, r, settings, lambda *_: None)
            )
        groups = [sides[f"rollout_{side}"][1] for side in ("tree", "rows")]
        ids = [[[c.token_ids for c in group] for group in found] for found in groups]
        if ids[0] != ids[1]:
            print(f"step {step}: some completion parted by rounding", flush=True)
        sequences = [
            TokenSequence(request.prompt_ids, completion)
            for request, group in zip(requests, ids[0], strict=True)
            for completion in group
        ]
        for side, share in (("tree", True), ("rows", False)):
            sides[f"update_{side}"] = timed(
                lambda s=sequences, share=share: gradient(learner, s, share)
            )
        one, other = (sides[f"update_{side}"][1] for side in ("tree", "rows"))
        worst = max(
            worst,
            max(
                float((a - b).abs().max() / b.abs().max()) for a, b in zip(one, other, strict=True)
            ),
        )
        if step:
            for name, (taken, _) in sides.items():
                seconds[name] += taken
    if worst > GRADIENT_TOLERANCE:
        raise SystemExit(f"The gradients differ by {worst:.2e} of their largest entry.")
    return {**seconds, "gradient_difference": worst}


def open_learner(spec: RunSpec) -> Learner:
    """The preset's model as a run would open it."""
    policy, plan = open_policy(spec.model.ref, spec.resources, MODELS_DIR, None)
    accelerator = Accelerator(cpu=plan.device.type == "cpu")
    return Learner(policy, accelerator, spec.resources.micro_batch_tokens, silent)


def silent(done: int, total: int, *, may_abandon: bool) -> None:
    """Nobody listens."""


def main() -> None:
    """Measure, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="fewer steps and prompts")
    quick = parser.parse_args().quick
    spec = TEACH_SMOLLM2_TO_ADD.spec
    sft = next(stage for stage in spec.stages if isinstance(stage, SftStage))
    rl = next(stage for stage in spec.stages if isinstance(stage, RlStage))
    MODELS_DIR.mkdir(parents=True, exist_ok=True)
    learner = open_learner(spec)
    with tempfile.TemporaryDirectory() as folder:
        source = open_domain(spec.domains[0], RunDir(Path(folder)), spec.seed)
        if quick:
            rl = rl.model_copy(update={"prompts_per_step": 3})
        teach_the_tag(learner, source, sft, 8 if quick else sft.steps)
        found = measure(learner, source, rl, 1 if quick else 6)
    ratios = {part: found[f"{part}_rows"] / found[f"{part}_tree"] for part in ("rollout", "update")}
    print(f"{'':<10}{'a row each, s':>15}{'as a tree, s':>15}{'ratio':>8}")
    for part, ratio in ratios.items():
        print(
            f"{part:<10}{found[f'{part}_rows']:>15.1f}{found[f'{part}_tree']:>15.1f}{ratio:>8.2f}"
        )
    result = {
        "quick": quick,
        **{f"{part}_ratio": round(ratio, 2) for part, ratio in ratios.items()},
        **{name: round(value, 6) for name, value in found.items()},
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
