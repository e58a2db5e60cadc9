"""Where a checkpoint comes from, as one document: base model, data, program, results.

Called by `services` when an export is made; the document goes into the folder as `lineage.json` and
is what the model card is written from. It holds facts of rows and of the frozen spec, no judgement.
"""

from __future__ import annotations

import json
from typing import Any

from training_core.contract.domains import DatasetDomain, DomainSpec
from training_core.contract.rewards import RewardNode, WeightedSumReward
from training_core.contract.stages import RlStage, StageSpec
from webapp.datasets.services import find_version
from webapp.evaluation.models import EvalRun
from webapp.registry.base_models import LINEAGE, describe_base
from webapp.runs.model_files import read_json
from webapp.runs.model_paths import find_model_directory
from webapp.runs.models import Checkpoint, Run

FORMAT = 1
MOST_ANCESTORS = 20
Document = dict[str, Any]


def read_lineage(checkpoint: Checkpoint) -> Document:
    """Everything that led to a checkpoint."""
    run = checkpoint.run
    spec = run.read_spec()
    attempt = run.attempts.filter(number=checkpoint.attempt).first()
    return {
        "format": FORMAT,
        "made_with": "Temper",
        "run": {
            "number": run.number,
            "id": str(run.pk),
            "name": run.name,
            "launched_at": run.created_at.isoformat(),
            "preset": run.preset,
            "seed": spec.seed,
        },
        "checkpoint": {
            "step": checkpoint.step,
            "total_steps": spec.total_steps,
            "stage": checkpoint.stage,
            "attempt": checkpoint.attempt,
            "saved_at": checkpoint.created_at.isoformat(),
            "is_best": checkpoint.is_best,
        },
        "base_model": _base(spec.model.ref),
        "continued_from": ancestors(run),
        "data": [_data(domain) for domain in spec.domains],
        "rewards": _rewards(spec.reward.root, 1.0),
        "stages": [_stage(stage) for stage in spec.stages],
        "evaluations": evaluations(run, checkpoint.step),
        "computed_on": {
            "device": attempt.device if attempt else "",
            "compute_dtype": attempt.facts.get("compute_dtype", "") if attempt else "",
            "versions": attempt.facts.get("versions", {}) if attempt else {},
        },
    }


def ancestors(run: Run) -> list[Document]:
    """Checkpoints of other runs whose weights this run went on from, the nearest first."""
    found: list[Document] = []
    while run.parent_checkpoint is not None and len(found) < MOST_ANCESTORS:
        before = run.parent_checkpoint
        run = before.run
        found.append({"run": run.number, "id": str(run.pk), "name": run.name, "step": before.step})
    return found


def evaluations(run: Run, step: int) -> list[Document]:
    """The first held-out evaluation and the newest up to a step: what was, and what became of it.

    Those of the same recipe as the newest, since only they may be compared.
    """
    found = list(
        EvalRun.objects.current().filter(run=run, step__lte=step).order_by("step", "at", "pk")
    )
    if not found:
        return []
    newest = found[-1]
    first = next(each for each in found if each.recipe == newest.recipe)
    return [_evaluation(each) for each in ([first] if first is newest else [first, newest])]


def _evaluation(row: EvalRun) -> Document:
    return {"title": row.title, "step": row.step, "recipe": row.recipe, "results": row.results}


def _base(ref: str) -> Document:
    """The base model; one that is itself an export brings its own lineage along."""
    base = describe_base(ref)
    folder = find_model_directory(ref)
    before = read_json(folder / LINEAGE) if folder else {}
    return {
        "ref": ref,
        "title": base.title,
        "origin": base.origin,
        "licence": base.licence or _licence_of(before),
        "truths": list(base.truths),
        "lineage": before or None,
    }


def _licence_of(lineage: Document) -> str:
    """The licence that a lineage names for its own base."""
    base = lineage.get("base_model")
    return str(base.get("licence", "")) if isinstance(base, dict) else ""


def _data(domain: DomainSpec) -> Document:
    """A domain as a source of prompts."""
    head: Document = {"domain": domain.name, "type": domain.type, "weight": domain.weight}
    if not isinstance(domain, DatasetDomain):
        return {**head, "generator": domain.generator, "params": dict(domain.params)}
    version = find_version(domain.dataset_version)
    return {
        **head,
        "dataset": version.dataset.name if version else "",
        "version": version.number if version else None,
        "version_id": domain.dataset_version,
        "content_hash": domain.content_hash,
        "records": version.record_count if version else None,
    }


def _rewards(node: RewardNode, weight: float) -> list[Document]:
    """Leaves with the product of the weights above them."""
    if isinstance(node, WeightedSumReward):
        return [leaf for term in node.terms for leaf in _rewards(term.node, weight * term.weight)]
    return [{"name": node.name, "type": node.type, "weight": weight}]


def _stage(stage: StageSpec) -> Document:
    """One stage of the program, in short; the spec has all of it."""
    head: Document = {
        "name": stage.name,
        "type": stage.type,
        "steps": stage.steps,
        "learning_rate": stage.optimiser.learning_rate,
    }
    if isinstance(stage, RlStage):
        return {
            **head,
            "algorithm": stage.algorithm.type,
            "prompts_per_step": stage.prompts_per_step,
            "group_size": stage.group_size,
            "shuffled_rewards": stage.shuffle_rewards,
        }
    return {**head, "batch_size": stage.batch_size}


def as_json(lineage: Document) -> str:
    """The document as a file."""
    return json.dumps(lineage, indent=2, ensure_ascii=False, default=str) + "\n"
