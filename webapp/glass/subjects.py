"""Subjects of a step under glass: a base model or a checkpoint, with the spec it comes from.

Called by the views. A subject brings the domains, the reward tree and the settings that the step
starts from: those of the checkpoint's run, or of the first preset that trains the base model.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from django.http import Http404
from django.utils.translation import gettext
from pydantic import ValidationError

from training_core.contract.presets import PRESETS
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage
from webapp.accounts.models import Project, User
from webapp.runs.access import get_checkpoint_for_user
from webapp.runs.forks import stage_of
from webapp.runs.models import Checkpoint, Run

LISTED = 60
"""Checkpoints that can be chosen from; an older one is opened by its link."""
BASE, CHECKPOINT = "base", "checkpoint"


@dataclass(frozen=True)
class Subject:
    """What the step is taken on."""

    key: str
    """Its name in forms and addresses."""
    title: str
    """In words."""
    spec: RunSpec
    """Where domains, rewards and settings come from."""
    source: str
    """What `spec` is, in words."""
    checkpoint: Checkpoint | None = None

    @property
    def run(self) -> Run | None:
        """The checkpoint's run."""
        return self.checkpoint.run if self.checkpoint else None

    @property
    def project(self) -> Project | None:
        """Where the step must go: the run's project; None for a base model."""
        return self.checkpoint.run.project if self.checkpoint else None

    @property
    def stage(self) -> RlStage:
        """The rl stage that the next step would belong to, else the last one, else a plain one."""
        stages = [stage for stage in self.spec.stages if isinstance(stage, RlStage)]
        if self.checkpoint is not None:
            done = 0
            for stage in self.spec.stages:
                done += stage.steps
                if isinstance(stage, RlStage) and done > self.checkpoint.step:
                    return stage
        return stages[-1] if stages else RlStage()

    @property
    def has_moments(self) -> bool:
        """Whether the checkpoint lies inside that stage, so that its optimiser goes on."""
        if self.checkpoint is None:
            return False
        index, kind, _ = stage_of(self.spec, self.checkpoint.step)
        return kind == "rl" and self.spec.stages[index].name == self.stage.name


def base_subjects() -> list[Subject]:
    """One for each model that a preset trains."""
    found: dict[str, Subject] = {}
    for preset in PRESETS:
        ref = preset.spec.model.ref
        source = gettext("the preset “%(title)s”") % {"title": preset.title}
        found.setdefault(ref, Subject(f"{BASE}:{ref}", ref, preset.spec, source))
    return list(found.values())


def checkpoints_for(user: User) -> list[Checkpoint]:
    """Checkpoints on disk that the user may see, of the newest runs first."""
    seen = Run.objects.visible_to(user)
    found = Checkpoint.objects.on_disk().filter(run__in=seen).select_related("run")
    return list(found.order_by("-run__number", "-step")[:LISTED])


def of_checkpoint(checkpoint: Checkpoint) -> Subject:
    """The subject of a checkpoint. Raises Http404 when it is no longer on disk."""
    if checkpoint.removed_at is not None:
        words = gettext("The checkpoint after step %(step)s is no longer on disk.")
        raise Http404(words % {"step": checkpoint.step})
    run = checkpoint.run
    try:
        spec = run.read_spec()
    except ValidationError:
        words = gettext("The spec of run #%(number)s is of a form that is not known.")
        raise Http404(words % {"number": run.number}) from None
    return Subject(
        key=f"{CHECKPOINT}:{checkpoint.pk}",
        title=f"#{run.number} {run.name}, step {checkpoint.step}"[:200],
        spec=spec,
        source=gettext("run #%(number)s") % {"number": run.number},
        checkpoint=checkpoint,
    )


def find_subject(user: User, key: str) -> Subject:
    """The subject of that name; without one the newest checkpoint, else the first base model.

    Raises Http404 for one that is not there or that the user may not see.
    """
    if not key:
        newest = checkpoints_for(user)[:1]
        with suppress(Http404):
            return of_checkpoint(newest[0]) if newest else base_subjects()[0]
        return base_subjects()[0]
    kind, _, name = key.partition(":")
    if kind == CHECKPOINT and re.fullmatch(r"[0-9]{1,15}", name):
        return of_checkpoint(get_checkpoint_for_user(user, int(name)))
    for subject in base_subjects():
        if subject.key == key:
            return subject
    raise Http404(gettext("There is no such model to take a step on."))
