"""How the launch form differs from a bare walk through RunSpec: what stands open, words, choices.

Read by `webapp.runs.forms`. A new field of the contract appears behind "all settings" by itself; it
is named here only when it deserves a place in front, or better words than its name.
"""

from __future__ import annotations

from typing import NamedTuple

from training_core.contract import domains, rewards, spec, stages
from webapp.accounts.models import Project
from webapp.datasets.models import DatasetVersion
from webapp.ui.schema_form.build import FormLook, Place
from webapp.ui.schema_form.nodes import Choice


class Section(NamedTuple):
    """One section of the form."""

    slug: str
    """Anchor."""
    title: str
    intro: str
    """One sentence."""
    fields: tuple[str, ...]
    """Fields of RunSpec that it shows."""


SECTIONS = (
    Section("run", "Run", "What you call it, and why you run it.", ("name", "notes")),
    Section("model", "Model", "The weights that training starts from.", ("model",)),
    Section("domains", "Domains", "Where prompts and their answers come from.", ("domains",)),
    Section("rewards", "Rewards", "What a completion is worth.", ("reward",)),
    Section("stages", "Stages", "The program, from top to bottom.", ("stages",)),
    Section("evaluation", "Evaluation", "Held-out prompts show what was learnt.", ("evaluation",)),
    Section(
        "resources",
        "Resources",
        "Device, checkpoints and limits.",
        ("resources", "checkpoint", "budget"),
    ),
    Section("seed", "Seed", "The same spec and seed give the same run.", ("seed",)),
)

KEY_FIELDS: frozenset[Place] = frozenset(
    {
        (spec.RunSpec, "name"),
        (spec.RunSpec, "notes"),
        (spec.RunSpec, "seed"),
        (spec.ModelSpec, "ref"),
        (domains.ReasoningGymDomain, "name"),
        (domains.ReasoningGymDomain, "generator"),
        (domains.ReasoningGymDomain, "weight"),
        (domains.ReasoningGymDomain, "params"),
        (domains.DatasetDomain, "name"),
        (domains.DatasetDomain, "dataset_version"),
        (domains.DatasetDomain, "weight"),
        (rewards.FormatReward, "tags"),
        (rewards.LengthReward, "target_tokens"),
        (rewards.LengthReward, "limit_tokens"),
        (rewards.CorrectnessReward, "answer_tag"),
        (rewards.MatchReward, "answer_tag"),
        (stages.SftStage, "steps"),
        (stages.SftStage, "batch_size"),
        (stages.RlStage, "steps"),
        (stages.RlStage, "prompts_per_step"),
        (stages.RlStage, "group_size"),
        (stages.OptimiserSpec, "learning_rate"),
        (stages.SamplingSpec, "max_new_tokens"),
        (spec.EvaluationSpec, "interval_steps"),
        (spec.EvaluationSpec, "max_new_tokens"),
        (spec.ResourceSpec, "device"),
        (spec.CheckpointSpec, "interval_steps"),
        (spec.BudgetSpec, "max_minutes"),
    }
)

LABELS: dict[Place, str] = {
    (spec.RunSpec, "resources"): "Machine",
    (spec.RunSpec, "checkpoint"): "Checkpoints",
    (spec.RunSpec, "budget"): "Limits",
    (spec.ModelSpec, "ref"): "Base model",
    (domains.ReasoningGymDomain, "params"): "Generator settings",
    (domains.DatasetDomain, "dataset_version"): "Dataset",
    (rewards.WeightedTerm, "node"): "Reward",
    (stages.SftStage, "optimiser"): "Optimiser",
    (stages.OptimiserSpec, "eps"): "Epsilon",
    (spec.EvaluationSpec, "interval_steps"): "Interval (steps)",
    (spec.CheckpointSpec, "interval_steps"): "Interval (steps)",
    (spec.BudgetSpec, "max_minutes"): "Time limit (minutes)",
    (spec.BudgetSpec, "max_tokens"): "Token limit",
}

TAG_LABELS = {
    "reasoning_gym": "Generator (reasoning-gym)",
    "dataset": "Dataset",
    "correctness": "Correctness",
    "format": "Format",
    "length": "Length",
    "match": "Exact match of words",
    "weighted_sum": "Weighted sum",
    "sft": "Supervised warm-up (SFT)",
    "rl": "Reinforcement learning (RL)",
}


def launch_look(project: Project | None) -> FormLook:
    """The look with the datasets that the project has now."""
    return FormLook(
        key_fields=KEY_FIELDS,
        labels=LABELS,
        tag_labels=TAG_LABELS,
        choices={(domains.DatasetDomain, "dataset_version"): dataset_choices(project)},
        suggestions={(spec.ModelSpec, "ref"): (spec.BUILTIN_MODEL, spec.TINY_MODEL)},
        templates={(rewards.WeightedSumReward, "terms"): "runs/launch/form/terms.html"},
    )


def dataset_choices(project: Project | None) -> list[Choice]:
    """Every version that a run of the project may use, the newest first."""
    versions = (
        DatasetVersion.objects.filter(state=DatasetVersion.State.READY, dataset__project=project)
        .select_related("dataset")
        .order_by("-created_at")[:500]
    )
    return [
        Choice(str(version.pk), f"{version} · {version.record_count:,} records")
        for version in versions
    ]
