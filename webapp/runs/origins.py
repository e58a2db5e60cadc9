"""Where a new run comes from: a preset, another run, a checkpoint, a model, or nothing.

Called by the launch views. It gives the document to start from and what the launch is told.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.utils.translation import gettext as _

from training_core.contract.domains import DatasetDomain
from training_core.contract.presets import PRESETS, Preset, find_preset
from training_core.contract.spec import RunSpec
from webapp.accounts.models import Project, User
from webapp.datasets.access import get_version_for_user
from webapp.datasets.models import DatasetVersion
from webapp.datasets.proposals import Proposal, propose
from webapp.runs.access import get_checkpoint_for_user, get_run_for_user
from webapp.runs.model_paths import find_run_of_path, is_path
from webapp.runs.models import Checkpoint, Run
from webapp.runs.preflight import can_use_answers
from webapp.runs.services import launch_run, restart_from

LONGEST_NAME = 120
LONGEST_REF = 500


@dataclass(frozen=True)
class Origin:
    """What a launch starts from: at most one; a dataset may come with a preset's settings."""

    preset: Preset | None = None
    parent: Run | None = None
    checkpoint: Checkpoint | None = None
    dataset: DatasetVersion | None = None
    model: str = ""
    """Model reference."""
    model_run: Run | None = None
    """The run whose checkpoint or export the model is."""

    @property
    def as_preset(self) -> Preset | None:
        """The preset whose document the form opens with; None where it is another one's."""
        others = (self.checkpoint, self.parent, self.dataset, self.model or None)
        return self.settings if all(other is None for other in others) else None

    @property
    def settings(self) -> Preset:
        """The preset whose settings hold where nothing else says more."""
        return self.preset or PRESETS[0]

    @property
    def words(self) -> str:
        """For people: what changes are counted against."""
        if self.checkpoint is not None:
            run = self.checkpoint.run
            return _("step %(step)s of run #%(number)s") % {
                "step": self.checkpoint.step,
                "number": run.number,
            }
        if self.parent is not None:
            return _("run #%(number)s") % {"number": self.parent.number}
        title = _(self.settings.title)
        if self.dataset is not None:
            words = _("the preset “%(title)s” on %(dataset)s")
            return words % {"title": title, "dataset": self.dataset}
        if self.model:
            return _("the first preset on another model")
        return _("the preset “%(title)s”") % {"title": title}

    @property
    def has_more_steps(self) -> bool:
        """Whether the document asks for more steps than the checkpoint's run had."""
        checkpoint = self.checkpoint
        return checkpoint is not None and checkpoint.step >= checkpoint.run.total_steps

    def document(self) -> dict[str, Any]:
        """The document that the form opens with."""
        if self.checkpoint is not None:
            run = self.checkpoint.run
            spec = with_steps_left(run.spec, self.checkpoint.step)
            return {**spec, "name": _name(run.name, f" from step {self.checkpoint.step}")}
        if self.parent is not None:
            return {**self.parent.spec, "name": next_name(self.parent.name)}
        document = self.settings.spec.model_dump(mode="json")
        if self.dataset is not None and self.proposal is not None:
            return {**document, **_on_dataset(self.dataset, document, self.proposal)}
        if self.model:
            trained = self.model_run.name if self.model_run else _last_part(self.model)
            return {**document, "name": _name(f"On {trained}", ""), "model": {"ref": self.model}}
        return document

    @cached_property
    def proposal(self) -> Proposal | None:
        """What the dataset's own answers and size say about the run; None without a dataset."""
        if self.dataset is None:
            return None
        spec = self.settings.spec
        return propose(
            self.dataset, spec.model_dump(mode="json"), partial(can_use_answers, spec.reward)
        )

    @property
    def project(self) -> Project | None:
        """Where what it starts from belongs; None for a preset."""
        if self.checkpoint is not None:
            return self.checkpoint.run.project
        if self.parent is not None:
            return self.parent.project
        if self.model_run is not None:
            return self.model_run.project
        return self.dataset.dataset.project if self.dataset is not None else None

    def hidden(self) -> dict[str, str]:
        """Form fields that carry the origin along."""
        if self.checkpoint is not None:
            return {"checkpoint": str(self.checkpoint.pk)}
        if self.parent is not None:
            return {"from": str(self.parent.number)}
        if self.dataset is not None:
            settings = {"preset": self.preset.slug} if self.preset else {}
            return {"dataset": str(self.dataset.pk), **settings}
        if self.model:
            return {"model": self.model}
        return {"preset": self.preset.slug} if self.preset else {}


def find_origin(user: User | AnonymousUser, values: Mapping[str, str]) -> Origin:
    """The origin that a query string or a form names. Raises Http404 for one that is not there."""
    if key := values.get("checkpoint"):
        return Origin(checkpoint=get_checkpoint_for_user(user, _whole(key)))
    if number := values.get("from"):
        return Origin(parent=get_run_for_user(user, _whole(number)))
    preset = _preset(values.get("preset", ""))
    if key := values.get("dataset"):
        return Origin(dataset=get_version_for_user(user, key), preset=preset)
    if ref := values.get("model"):
        return _on_model(user, ref[:LONGEST_REF].replace("\0", ""))
    return Origin(preset=preset)


def _preset(slug: str) -> Preset | None:
    """The preset; None for no name. Raises Http404 for one that is not there."""
    preset = find_preset(slug) if slug else None
    if slug and preset is None:
        raise Http404(_("There is no preset %(name)s.") % {"name": slug})
    return preset


def launch_from(
    origin: Origin, owner: User, spec: RunSpec, key: str, project: Project | None = None
) -> Run:
    """Launch a spec under its origin. Raises LaunchRefused. The same key gives the same run."""
    if origin.checkpoint is not None:
        return restart_from(origin.checkpoint, owner, spec, key or None, project)
    parent = origin.parent
    preset = "" if origin.preset is None or origin.dataset else origin.preset.slug
    return launch_run(
        owner=owner,
        spec=spec,
        preset=parent.preset if parent else preset,
        idempotency_key=key or None,
        parent=parent,
        project=project,
    )


def new_key() -> str:
    """An idempotency key for one rendered form."""
    return uuid.uuid4().hex


def next_name(name: str) -> str:
    """`Add` as `Add (2)`, `Add (2)` as `Add (3)`."""
    match = re.fullmatch(r"(.*) \((\d{1,6})\)", name, re.DOTALL)
    if match:
        return _name(match[1], f" ({int(match[2]) + 1})")
    return _name(name, " (2)")


def with_steps_left(spec: dict[str, Any], done: int) -> dict[str, Any]:
    """The spec, its last stage twice as long where all its steps are done already."""
    stages = [dict(stage) for stage in spec["stages"]]
    if sum(stage["steps"] for stage in stages) <= done:
        stages[-1]["steps"] *= 2
    return {**spec, "stages": stages}


def _on_dataset(
    version: DatasetVersion, document: dict[str, Any], proposal: Proposal
) -> dict[str, Any]:
    """Name, domain and what is proposed for a run on a dataset."""
    first = document["domains"][0]
    slug = re.sub(r"[^a-z0-9]+", "-", version.dataset.name.lower()).strip("-")[:60]
    fields = {
        "name": f"dataset/{slug or 'upload'}",
        "dataset_version": str(version.pk),
        "system_prompt": proposal.system_prompt,
        "demonstration_template": first["demonstration_template"],
        "held_out_items": min(64, max(2, version.held_out_count)),
    }
    domain = DatasetDomain.model_validate(fields).model_dump(mode="json")
    name = _name(f"Train on {version.dataset.name}", "")
    return {"name": name, "domains": [domain], **proposal.changes}


def _on_model(user: User | AnonymousUser, ref: str) -> Origin:
    """A run on another model: one of a run that the user sees goes to that run's project."""
    runs = Run.objects.visible_to(user).select_related("project")
    run_id = find_run_of_path(ref) if is_path(ref) else None
    return Origin(model=ref, model_run=runs.filter(pk=run_id).first() if run_id else None)


def _last_part(ref: str) -> str:
    """What a model is called, without the folders or the organisation before it."""
    return ref.rstrip("/").rpartition("/")[2] or ref


def _name(name: str, ending: str) -> str:
    """A name with an ending, no longer than names may be."""
    return name[: LONGEST_NAME - len(ending)] + ending


def _whole(text: str) -> int:
    """A row number from a query string; -1, which no row has, for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else -1
