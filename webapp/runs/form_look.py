"""How the launch form differs from a bare walk through RunSpec: what stands open, words, choices.

Read by `webapp.runs.forms`. A new field of the contract appears behind "all settings" by itself; it
is named here only when it deserves a place in front, or better words than its name.
"""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from training_core.contract import domains, rewards, spec, stages
from webapp.accounts.models import Project
from webapp.datasets.models import DatasetVersion
from webapp.ui.schema_form.build import FormLook, Place
from webapp.ui.schema_form.nodes import Choice


class Section(NamedTuple):
    """One section of the form."""

    slug: str
    """Anchor."""
    title: Promise
    intro: Promise
    """One sentence."""
    fields: tuple[str, ...]
    """Fields of RunSpec that it shows."""


SECTIONS = (
    Section("run", _("Run"), _("What you call it, and why you run it."), ("name", "notes")),
    Section("model", _("Model"), _("The weights that training starts from."), ("model",)),
    Section("domains", _("Domains"), _("Where prompts and their answers come from."), ("domains",)),
    Section("rewards", _("Rewards"), _("What a completion is worth."), ("reward",)),
    Section("stages", _("Stages"), _("The program, from top to bottom."), ("stages",)),
    Section(
        "evaluation", _("Evaluation"), _("Held-out prompts show what was learnt."), ("evaluation",)
    ),
    Section(
        "resources",
        _("Resources"),
        _("Device, checkpoints and limits."),
        ("resources", "checkpoint", "budget"),
    ),
    Section("seed", _("Seed"), _("The same spec and seed give the same run."), ("seed",)),
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

LABELS: dict[Place, Promise] = {
    (spec.RunSpec, "resources"): _("Machine"),
    (spec.RunSpec, "checkpoint"): _("Checkpoints"),
    (spec.RunSpec, "budget"): _("Limits"),
    (spec.ModelSpec, "ref"): _("Base model"),
    (domains.ReasoningGymDomain, "params"): _("Generator settings"),
    (domains.DatasetDomain, "dataset_version"): _("Dataset"),
    (rewards.WeightedTerm, "node"): _("Reward"),
    (stages.SftStage, "optimiser"): _("Optimiser"),
    (stages.OptimiserSpec, "eps"): _("Epsilon"),
    (spec.EvaluationSpec, "interval_steps"): _("Interval (steps)"),
    (spec.CheckpointSpec, "interval_steps"): _("Interval (steps)"),
    (spec.BudgetSpec, "max_minutes"): _("Time limit (minutes)"),
    (spec.BudgetSpec, "max_tokens"): _("Token limit"),
}

TAG_LABELS: dict[str, str | Promise] = {
    "reasoning_gym": _("Generator (reasoning-gym)"),
    "dataset": _("Dataset"),
    "correctness": _("Correctness"),
    "format": _("Format"),
    "length": _("Length"),
    "match": _("Exact match of words"),
    "weighted_sum": _("Weighted sum"),
    "sft": _("Supervised warm-up (SFT)"),
    "rl": _("Reinforcement learning (RL)"),
    "grpo": "GRPO",
    "dr_grpo": "Dr. GRPO",
    "dapo": "DAPO",
    "gspo": "GSPO",
    "cispo": "CISPO",
    "rloo": "RLOO",
    "reinforce_plus_plus": "REINFORCE++",
    "reinforce_plus_plus_baseline": _("REINFORCE++ with a baseline"),
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
    return [Choice(str(version.pk), _choice_words(version)) for version in versions]


def _choice_words(version: DatasetVersion) -> str:
    """A version in the list of datasets."""
    count = version.record_count
    words = ngettext("%(version)s · %(count)s record", "%(version)s · %(count)s records", count)
    return words % {"version": version, "count": f"{count:,}"}
