"""What to do after a run has ended: at most three proposals, each with the fact that it rests on.

Called by the run's views. Rules in the order of their weight; each looks at numbers that the page
shows too, so that a person can check it. Nothing is proposed that the person who looks may not do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.urls import reverse
from django.utils.translation import gettext as _

from training_core.contract.spec import RunSpec
from webapp.runs.changed import WhatChanged, items_needed
from webapp.runs.models import Checkpoint, Run
from webapp.runs.overview import EvalCard, spec_of
from webapp.runs.status import RunState
from webapp.ui.wording import format_number, format_percent, format_points

SHOWN = 3
NOTICEABLE = 0.01
"""A change of pass@1 that is worth a word: one point."""
MANY_DEAD = 0.5
"""Share of groups without spread beyond which a step is mostly wasted."""
EASY, HARD = 0.8, 0.2
"""Mean reward above which the prompts are easy, below which hard."""
MANY_CUT = 0.1
NEARLY_ALL = 0.95


class NextAction(NamedTuple):
    """One proposal."""

    title: str
    """What to do."""
    why: str
    """The fact behind it."""
    url: str
    icon: str


class Offers(NamedTuple):
    """What may be proposed to the person who looks."""

    steering: bool
    """Whether they may steer the run."""
    launching: bool
    """Whether they launch runs anywhere."""


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    run: Run
    spec: RunSpec
    cards: Sequence[EvalCard]
    change: WhatChanged | None
    offers: Offers
    newest: Checkpoint | None
    best: Checkpoint | None

    @property
    def passes(self) -> list[float]:
        """pass@1 of the evaluations that can be compared with the last one, oldest first."""
        recipe = self.cards[-1].evaluation.recipe if self.cards else ""
        same = [card for card in self.cards if card.evaluation.recipe == recipe]
        return [card.overall.pass_at_1.value for card in same]

    def latest(self, metric: str) -> float | None:
        """A headline metric's last value; None where there is none that is a finite number."""
        value = self.run.latest.get(metric)
        return float(value) if isinstance(value, int | float) else None


def next_actions(
    run: Run, cards: Sequence[EvalCard], change: WhatChanged | None, offers: Offers
) -> list[NextAction]:
    """At most three, the weightiest first."""
    spec = spec_of(run)
    if spec is None or change is None:
        return []
    kept = list(run.checkpoints.on_disk().order_by("-step"))
    best = next((checkpoint for checkpoint in kept if checkpoint.is_best), None)
    newest = kept[0] if kept else None
    facts = Facts(run, spec, cards, change, offers, newest, best)
    found: list[NextAction] = []
    rules = RULES if offers.launching else [rule for rule in RULES if rule not in LAUNCHES]
    for rule in rules:
        found += [action for action in rule(facts) if action.url not in {a.url for a in found}]
    return found[:SHOWN]


def _resume(it: Facts) -> Iterator[NextAction]:
    """It was stopped before its end."""
    left = it.run.total_steps - it.run.step
    if it.run.state == RunState.STOPPED and it.run.can_resume and it.offers.steering and left > 0:
        url = reverse("runs:control", args=[it.run.number, "resume"])
        why = _("It was stopped at step %(step)s; %(left)s of %(total)s are left.") % {
            "step": f"{it.run.step:,}",
            "left": f"{left:,}",
            "total": f"{it.run.total_steps:,}",
        }
        yield NextAction(_("Resume it"), why, url, "play")


def _go_back(it: Facts) -> Iterator[NextAction]:
    """The best weights are not the last ones."""
    if it.best is None or it.best.pass_at_1 is None or not it.passes:
        return
    lost = it.best.pass_at_1 - it.passes[-1]
    if it.best.step < it.run.step and lost >= NOTICEABLE:
        step = f"{it.best.step:,}"
        why = _(
            "Step %(step)s solved %(best)s of the held-out items, the end %(end)s: %(points)s."
        ) % {
            "step": step,
            "best": format_percent(it.best.pass_at_1),
            "end": format_percent(it.passes[-1]),
            "points": format_points(-lost),
        }
        title = _("Restart from step %(step)s") % {"step": step}
        yield NextAction(title, why, _launch(it.best), "branch")


def _train_on(it: Facts) -> Iterator[NextAction]:
    """It was still getting better when it ended."""
    if it.newest is None or len(it.passes) < 2:
        return
    rise = it.passes[-1] - it.passes[-2]
    is_best = it.passes[-1] >= max(it.passes)
    if rise >= NOTICEABLE and is_best and it.passes[-1] < NEARLY_ALL:
        why = _("It was still rising: %(points)s between the last two evaluations.") % {
            "points": format_points(rise)
        }
        title = _("Train on from step %(step)s") % {"step": f"{it.newest.step:,}"}
        yield NextAction(title, why, _launch(it.newest), "play")


def _measure_better(it: Facts) -> Iterator[NextAction]:
    """Too few held-out items to say anything."""
    compared = it.cards[-1].overall.compared if it.cards else ()
    for change in sorted(compared, key=lambda change: -change.against_step)[:1]:
        between = change.difference
        needed = items_needed(between)
        if between.low <= 0 <= between.high and needed is not None and needed > between.n:
            why = _("%(n)s items cannot show this change; about %(needed)s could.") % {
                "n": f"{between.n:,}",
                "needed": f"{needed:,}",
            }
            url = _clone(it, "field-domains.0.held_out_items")
            yield NextAction(_("Evaluate on more items"), why, url, "gauge")


def _change_difficulty(it: Facts) -> Iterator[NextAction]:
    """Most groups agreed with themselves, so they taught nothing."""
    dead, reward = it.latest("frac_reward_zero_std"), it.latest("reward")
    if dead is None or reward is None or dead < MANY_DEAD:
        return
    why = _(
        "%(share)s of the last step's groups had equal rewards and taught nothing; their mean "
        "reward was %(mean)s."
    ) % {"share": format_percent(dead), "mean": format_number(round(reward, 2))}
    if reward >= EASY:
        yield NextAction(_("Use harder prompts"), why, _clone(it, "item-domains.0"), "up")
    elif reward <= HARD:
        title = _("Use easier prompts or a longer warm-up")
        yield NextAction(title, why, _clone(it, "item-domains.0"), "down")
    else:
        title = _("Sample larger groups")
        yield NextAction(title, why, _clone(it, "item-stages.0"), "plus")


def _allow_longer(it: Facts) -> Iterator[NextAction]:
    """Completions hit the limit before they answered."""
    cut = it.cards[-1].overall.truncated_frac if it.cards else 0.0
    if cut >= MANY_CUT:
        limit = it.spec.evaluation.max_new_tokens
        why = _("%(share)s of the held-out completions were cut at %(limit)s tokens.") % {
            "share": format_percent(cut),
            "limit": f"{limit:,}",
        }
        url = _clone(it, "field-evaluation.max_new_tokens")
        yield NextAction(_("Allow longer completions"), why, url, "right")


def _harder(it: Facts) -> Iterator[NextAction]:
    """There is hardly anything left to learn here."""
    if it.passes and it.passes[-1] >= NEARLY_ALL:
        why = _("It solves %(share)s of the held-out items.") % {
            "share": format_percent(it.passes[-1])
        }
        yield NextAction(_("Try something harder"), why, _clone(it, "item-domains.0"), "up")


def _repeat(it: Facts) -> Iterator[NextAction]:
    """One run is one draw."""
    why = _("One run is one draw: a second seed shows how much of the result is luck.")
    yield NextAction(_("Repeat with another seed"), why, _clone(it, "field-seed"), "redo")


def _download(it: Facts) -> Iterator[NextAction]:
    """Take the weights along."""
    if it.newest is not None:
        url = reverse("runs:checkpoints", args=[it.run.number])
        why = _("Its checkpoints are on disk.")
        if it.best is not None:
            step = f"{it.best.step:,}"
            why = _("Its checkpoints are on disk, the best one of step %(step)s.") % {"step": step}
        yield NextAction(_("Take the weights"), why, url, "download")


def _report(it: Facts) -> Iterator[NextAction]:
    """Show it to somebody."""
    url = reverse("metrics:report", args=[it.run.number])
    yield NextAction(_("Download the report"), _("One file that opens anywhere."), url, "file")


RULES = (
    _resume,
    _go_back,
    _train_on,
    _measure_better,
    _change_difficulty,
    _allow_longer,
    _harder,
    _repeat,
    _download,
    _report,
)
LAUNCHES = frozenset(
    {_go_back, _train_on, _measure_better, _change_difficulty, _allow_longer, _harder, _repeat}
)
"""Rules whose proposals lead to the launch page."""


def _launch(checkpoint: Checkpoint) -> str:
    """The launch form that goes on from a checkpoint."""
    return f"{reverse('runs:launch')}?checkpoint={checkpoint.pk}"


def _clone(it: Facts, place: str) -> str:
    """The launch form with this run's spec, at a part of it."""
    return f"{reverse('runs:launch')}?from={it.run.number}#{place}"
