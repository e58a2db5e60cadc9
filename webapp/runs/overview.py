"""What the head of a run's page says: phase, stages, evaluations, attempts, what may be done.

Called by the run's views. It turns rows into sentences and numbers; templates only lay them out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ValidationError

from training_core.contract.events import DomainResult, Interval, PairedDifference
from training_core.contract.rewards import iter_leaves
from training_core.contract.spec import RunSpec
from webapp.evaluation.models import EvalRun
from webapp.runs.access import steering_right, why_not_control
from webapp.runs.models import Attempt, Checkpoint, ControlRequest, Run, RunNotice
from webapp.ui.projects import Standing
from webapp.ui.wording import format_number, format_points

PHASE_WORDS: dict[str, str | Promise] = {
    "load": gettext_lazy("loading the model"),
    "rollout": gettext_lazy("generating"),
    "reward": gettext_lazy("scoring"),
    "update": gettext_lazy("updating the weights"),
    "sft": gettext_lazy("imitating demonstrations"),
    "evaluate": gettext_lazy("evaluating on held-out prompts"),
    "checkpoint": gettext_lazy("saving a checkpoint"),
}
UNITS: dict[str, str | Promise] = {
    "rollouts": gettext_lazy("rollouts"),
    "micro-batches": gettext_lazy("micro-batches"),
    "checkpoints": gettext_lazy("checkpoints"),
}
STATE_SENTENCES: dict[str, str | Promise] = {
    "queued": gettext_lazy("Waits for a worker."),
    "starting": gettext_lazy("A worker has it; the trainer is starting."),
    "pausing": gettext_lazy("Saving a checkpoint, then it pauses."),
    "stopping": gettext_lazy("Saving a checkpoint, then it stops."),
    "lost": gettext_lazy(
        "Its worker is silent. It is queued again by itself, from its newest checkpoint."
    ),
}
SHOWN_NOTICES = 5


class StageView(NamedTuple):
    """One stage on the timeline."""

    name: str
    kind: str
    """`sft` or `rl`."""
    steps: int
    done: int

    @property
    def is_done(self) -> bool:
        """Whether all its steps are done."""
        return self.done >= self.steps

    @property
    def is_current(self) -> bool:
        """Whether it is being worked on."""
        return 0 < self.done < self.steps


class PhaseView(NamedTuple):
    """What happens inside the step."""

    sentence: str
    done: int
    total: int
    tokens_per_s: float | None


class Difference(NamedTuple):
    """A paired change in words."""

    words: str
    """`+41.7 points against the base model`."""
    interval: str
    """`95 % interval +30.1 to +52.2 points`."""
    verdict: str
    tone: str
    """ok, bad or calm."""


class EvalCard(NamedTuple):
    """One evaluation as a card."""

    evaluation: EvalRun
    overall: DomainResult
    domains: tuple[DomainResult, ...]
    differences: tuple[Difference, ...]
    heading: str

    @property
    def rows(self) -> list[DomainResult]:
        """All domains together, then each one where there are several."""
        return [self.overall, *(self.domains if len(self.domains) > 1 else ())]


@dataclass(frozen=True)
class Overview:
    """Everything above the tabs of a run's page."""

    run: Run
    spec: RunSpec | None
    """None when today's contract cannot read it any more."""
    may_control: bool
    why_not: str
    """Why this person may not steer it, and who can; empty when they may."""
    parent: Run | None
    """The run that it was made from, where this person may see it."""
    comment_count: int
    phase: PhaseView | None
    stages: list[StageView]
    attempt: Attempt | None
    attempts: int
    newest_checkpoint: Checkpoint | None
    pending: list[ControlRequest]
    notices: list[RunNotice]

    @property
    def sentence(self) -> str:
        """What it is doing, in a sentence."""
        if self.phase is not None and self.run.state in {"running", "starting"}:
            return self.phase.sentence
        return str(STATE_SENTENCES.get(self.run.state, ""))

    @property
    def phase_words(self) -> str:
        """The words for each phase as JSON, for the script that moves the bar."""
        return json.dumps({phase: str(words) for phase, words in PHASE_WORDS.items()})

    @property
    def attempts_line(self) -> str:
        """`Attempt 2, from step 40`; empty for a first attempt from the start."""
        if self.attempt is None or (self.attempts < 2 and not self.attempt.start_step):
            return ""
        number, start = self.attempt.number, self.attempt.start_step
        if start is None:
            return _("Attempt %(n)s") % {"n": number}
        return _("Attempt %(n)s, from step %(step)s") % {"n": number, "step": f"{start:,}"}

    @property
    def banner_tone(self) -> str:
        """Tone of the cause; empty when there is nothing to explain."""
        tones = {"failed": "bad", "lost": "warn", "stopped": "info", "paused": "info"}
        if self.run.state == "queued" and self.run.cause not in {"", "launched", "resumed"}:
            return "warn"
        return tones.get(self.run.state, "") if self.run.message else ""


def read_overview(run: Run, user: Any, standing: Standing) -> Overview:
    """The head of a run's page."""
    spec = spec_of(run)
    attempts = list(run.attempts.order_by("-number")[:1])
    pending = run.control_requests.filter(attempt=run.attempt, applied_at=None)
    may_control = run.project in standing.where(steering_right(user, run))
    return Overview(
        run=run,
        spec=spec,
        may_control=may_control,
        why_not="" if may_control else why_not_control(user, run),
        parent=find_parent(run, user),
        comment_count=run.comments.filter(deleted_at=None).count(),
        phase=phase_view(run.phase),
        stages=stage_views(spec, run.step),
        attempt=attempts[0] if attempts else None,
        attempts=run.attempt,
        newest_checkpoint=run.checkpoints.on_disk().order_by("-step").first(),
        pending=list(pending) if run.is_live else [],
        notices=list(run.notices.order_by("-at", "-seq")[:SHOWN_NOTICES]),
    )


def find_parent(run: Run, user: Any) -> Run | None:
    """What the run was made from; None without one, or when the user may not see it."""
    if run.parent_id is None:
        return None
    return Run.objects.visible_to(user).filter(pk=run.parent_id).first()


def phase_view(phase: Any) -> PhaseView | None:
    """The newest PhaseProgress as a sentence and a bar."""
    if not isinstance(phase, dict):
        return None
    sentence = str(PHASE_WORDS.get(str(phase.get("phase")), str(phase.get("phase"))))
    step, done, total = (int(phase.get(key) or 0) for key in ("step", "done", "total"))
    if total:
        unit = str(phase.get("unit", ""))
        values = {
            "doing": sentence,
            "done": f"{done:,}",
            "total": f"{total:,}",
            "unit": UNITS.get(unit, unit),
        }
        sentence = (_("%(doing)s %(done)s of %(total)s %(unit)s") % values).rstrip()
    if step:
        sentence = _("Step %(step)s: %(doing)s") % {"step": f"{step:,}", "doing": sentence}
    return PhaseView(sentence[:1].upper() + sentence[1:], done, total, phase.get("tokens_per_s"))


def spec_of(run: Run) -> RunSpec | None:
    """The run's spec, or None when it was written by a version that we cannot read."""
    try:
        return run.read_spec()
    except ValidationError:
        return None


def stage_views(spec: RunSpec | None, step: int) -> list[StageView]:
    """The stages with the steps done in each."""
    views, before = [], 0
    for stage in spec.stages if spec is not None else ():
        done = min(max(step - before, 0), stage.steps)
        views.append(StageView(stage.name, stage.type, stage.steps, done))
        before += stage.steps
    return views


def eval_cards(run: Run) -> list[EvalCard]:
    """All evaluations that count, oldest first."""
    spec = spec_of(run)
    order = [leaf.name for leaf in iter_leaves(spec.reward.root)] if spec is not None else []
    cards = []
    for evaluation in EvalRun.objects.current().filter(run=run).order_by("step", "at"):
        results = tuple(_in_order(item, order) for item in evaluation.results)
        if results:
            cards.append(_card(evaluation, results))
    return cards


def summary_cards(cards: Sequence[EvalCard]) -> list[EvalCard]:
    """Base, after the first stage, now: at most three of all evaluations."""
    if len(cards) <= 3:
        return list(cards)
    first_end = next((c for c in cards[1:-1] if c.evaluation.label == "stage_end"), None)
    return [c for c in (cards[0], first_end, cards[-1]) if c is not None]


def _in_order(item: Any, names: list[str]) -> DomainResult:
    """A stored result with its rewards in the order of the spec, which JSON columns forget."""
    result = DomainResult.model_validate(item)
    known = {name: result.components[name] for name in names if name in result.components}
    return result.model_copy(update={"components": {**known, **result.components}})


def _card(evaluation: EvalRun, results: tuple[DomainResult, ...]) -> EvalCard:
    """One evaluation with its differences in words."""
    title = title_words(evaluation.title or f"step {evaluation.step}")
    return EvalCard(
        evaluation=evaluation,
        overall=results[0],
        domains=results[1:],
        differences=tuple(describe(item) for item in results[0].compared),
        heading=title[:1].upper() + title[1:],
    )


def title_words(title: str) -> str:
    """The title that a trainer gave an evaluation, as people read it."""
    if title == "base model":
        return _("base model")
    if title == "final":
        return _("final")
    if step := re.fullmatch(r"step ([0-9]+)", title):
        return _("step %(n)s") % {"n": step[1]}
    if stage := re.fullmatch(r"after (.+)", title):
        return _("after %(stage)s") % {"stage": stage[1]}
    return title


def describe(change: PairedDifference) -> Difference:
    """A paired difference in words, with what the interval allows one to say."""
    it: Interval = change.difference
    words = _("%(points)s against %(earlier)s") % {
        "points": format_points(it.value),
        "earlier": title_words(change.against_label) or _("an earlier evaluation"),
    }
    interval = _("95 %% interval %(low)s to %(high)s") % {
        "low": _signed(it.low),
        "high": format_points(it.high),
    }
    if it.low > 0:
        return Difference(words, interval, _("better"), "ok")
    if it.high < 0:
        return Difference(words, interval, _("worse"), "bad")
    return Difference(words, interval, _("no difference shown"), "calm")


def _signed(difference: float) -> str:
    """A difference in points without their name."""
    if not math.isfinite(difference):
        return format_number(difference)
    return f"{difference * 100:+.1f}".replace("-", "−")
