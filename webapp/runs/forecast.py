"""What a run will do and cost, as far as its spec tells: the numbers of the preflight panel.

Called by the launch views. Bounds, not guesses: tokens are the most that sampling allows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training_core.contract.rewards import WeightedSumReward
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage, SftStage
from training_core.contract.tasknames import QUEUE_TRAIN
from webapp.runs import disk
from webapp.runs.models import Run
from webapp.runs.status import RunState
from webapp.workers_page.models import Worker


class Forecast(NamedTuple):
    """The numbers."""

    steps: int
    sft_steps: int
    rl_steps: int
    rollouts: int
    """Sampled for training."""
    evaluations: int
    """Held-out evaluations."""
    evaluation_completions: int
    """Completions of each."""
    most_tokens: int
    """Most completion tokens that training can sample."""
    disk_bytes: int
    """Most that the run directory is expected to hold."""
    free_bytes: int
    """Free on that disk."""
    warnings: list[str]


class Queue(NamedTuple):
    """What a new run would meet."""

    waiting: int
    """Runs before it."""
    busy: int
    """Runs in training."""
    slots: int
    """Runs that living workers can train at once."""

    @property
    def sentence(self) -> str:
        """In words."""
        if not self.slots:
            return _("No worker takes runs now; it will wait until one starts.")
        if self.waiting:
            words = ngettext(
                "%(count)s run waits before it.", "%(count)s runs wait before it.", self.waiting
            )
            return words % {"count": self.waiting}
        if self.busy < self.slots:
            return _("A worker is free: it starts at once.")
        return _("All workers are busy; it is next.")


def forecast(spec: RunSpec) -> Forecast:
    """The numbers of a valid spec."""
    rl = [stage for stage in spec.stages if isinstance(stage, RlStage)]
    rollouts = sum(stage.steps * stage.prompts_per_step * stage.group_size for stage in rl)
    tokens = sum(
        stage.steps
        * stage.prompts_per_step
        * stage.group_size
        * stage.sampling.max_new_tokens
        * most_rounds(stage)
        for stage in rl
    )
    items = sum(domain.held_out_items for domain in spec.domains)
    return Forecast(
        steps=spec.total_steps,
        sft_steps=sum(stage.steps for stage in spec.stages if isinstance(stage, SftStage)),
        rl_steps=sum(stage.steps for stage in rl),
        rollouts=rollouts,
        evaluations=_evaluations(spec, rl),
        evaluation_completions=items * spec.evaluation.samples_per_prompt,
        most_tokens=min(tokens, spec.budget.max_tokens or tokens),
        disk_bytes=disk.needed_bytes(spec),
        free_bytes=shutil.disk_usage(_existing(Path(settings.RUNS_DIR))).free,
        warnings=list(_warnings(spec, rl)),
    )


def most_rounds(stage: RlStage) -> int:
    """How often dynamic sampling may sample the groups of a step."""
    algorithm = stage.algorithm
    return algorithm.most_sampling_rounds if algorithm.dynamic_sampling else 1


def queue_now() -> Queue:
    """What waits and works at this moment."""
    workers = [w for w in Worker.objects.alive() if QUEUE_TRAIN in w.queues]
    return Queue(
        waiting=Run.objects.filter(state=RunState.QUEUED).count(),
        busy=Run.objects.live().count(),
        slots=sum(worker.slots for worker in workers),
    )


def _evaluations(spec: RunSpec, rl: list[RlStage]) -> int:
    """How often the run evaluates; the last stage's end is also the run's."""
    every = spec.evaluation.interval_steps
    between = sum((stage.steps - 1) // every for stage in rl) if every else 0
    ends = len(spec.stages) if spec.evaluation.stage_end else 1
    return int(spec.evaluation.at_start) + between + ends


def _rl_warnings(stage: RlStage) -> Iterator[str]:
    """Those of one rl stage."""
    if stage.shuffle_rewards:
        words = _("%(stage)s: rewards are shuffled, so nothing can be learnt (a control).")
        yield words % {"stage": stage.name}
    if most_rounds(stage) > 1:
        words = _("%(stage)s: dynamic sampling may sample up to %(times)s times as much.")
        yield words % {"stage": stage.name, "times": most_rounds(stage)}
    if stage.group_size < 4:
        words = _("%(stage)s: groups of %(size)s often agree, and then teach nothing.")
        yield words % {"stage": stage.name, "size": stage.group_size}


def _warnings(spec: RunSpec, rl: list[RlStage]) -> Iterator[str]:
    """What is allowed and yet worth a second look."""
    for stage in spec.stages:
        if stage.optimiser.learning_rate == 0:
            words = _("%(stage)s: the learning rate is 0, so nothing is learnt (a control).")
            yield words % {"stage": stage.name}
    for stage in rl:
        yield from _rl_warnings(stage)
    if not spec.evaluation.at_start:
        yield _("Without an evaluation at the start there is no base to compare with.")
    idle = [domain.name for domain in spec.domains if domain.weight == 0]
    if idle:
        words = _("Never trained on, only evaluated: %(domains)s (weight 0).")
        yield words % {"domains": ", ".join(idle)}
    root = spec.reward.root
    if isinstance(root, WeightedSumReward) and any(term.weight == 0 for term in root.terms):
        yield _("A reward with weight 0 is measured and does not count.")
    if rl and not any(stage.type == "sft" for stage in spec.stages):
        yield _("Without a warm-up stage the model must find the answer format by chance.")


def _existing(path: Path) -> Path:
    """The nearest directory that is there already."""
    return next(each for each in (path, *path.parents) if each.exists())
