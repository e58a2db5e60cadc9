"""The way to a first result, as a list that ticks itself off: model, worker, launch, result.

Shown on the home page and on the runs page until a run has come to its end, or until there are so
many that nobody is new; never to somebody who launches nothing. Called by their views and by the
fragment that keeps the list fresh.
"""

from __future__ import annotations

from typing import NamedTuple

from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.evaluation.models import EvalRun
from webapp.runs.changed import ENDED_WELL
from webapp.runs.forecast import queue_now
from webapp.runs.models import Run
from webapp.runs.status import RunState
from webapp.ui.model_progress import ModelProgress, read_model_progress

NEW_UP_TO = 3
"""Runs of which none has ended well, as on a first day."""


class FirstStep(NamedTuple):
    """One step."""

    title: str
    is_done: bool
    words: str
    """What it waits for, or what to do."""
    url: str = ""
    """Where to do it or to see it."""
    link: str = ""
    """Words of the link."""


class FirstSteps(NamedTuple):
    """The list."""

    steps: list[FirstStep]
    is_over: bool
    """Whether nobody needs the list any more."""
    has_launched: bool

    @property
    def done(self) -> int:
        """Steps that are ticked off."""
        return sum(step.is_done for step in self.steps)

    @property
    def current(self) -> FirstStep | None:
        """The step to do now."""
        return next((step for step in self.steps if not step.is_done), None)


def read_first_steps(user: User, may_launch: bool) -> FirstSteps:
    """Where the user stands, among all the runs that they may see."""
    runs = Run.objects.visible_to(user)
    if not may_launch or runs.filter(state__in=ENDED_WELL).exists() or runs.count() > NEW_UP_TO:
        return FirstSteps([], is_over=True, has_launched=True)
    run = runs.order_by("-number").defer("spec").first()
    steps = [_model(read_model_progress()), _worker(), _launch(run), _base(run), _result(run)]
    return FirstSteps(steps, is_over=False, has_launched=run is not None)


def _model(progress: ModelProgress) -> FirstStep:
    """The built-in model is unpacked."""
    words = {
        "ready": _("SmolLM2-135M-Instruct is unpacked and ready."),
        "running": _("SmolLM2-135M is being unpacked; the tiny preset can start meanwhile."),
        "failed": _("It could not be prepared; the tiny preset works all the same."),
        "waiting": _("A worker unpacks SmolLM2-135M once; the tiny preset can start meanwhile."),
    }
    return FirstStep(_("The model is here"), progress.state == "ready", words[progress.state])


def _worker() -> FirstStep:
    """A worker takes runs."""
    queue = queue_now()
    words = queue.sentence if queue.slots else _("No worker has reported itself yet.")
    where = (reverse("workers:index"), _("Workers"))
    return FirstStep(_("A worker is here"), queue.slots > 0, words, *where)


def _launch(run: Run | None) -> FirstStep:
    """A run is launched."""
    title = _("Launch an experiment")
    if run is None:
        words = _("Pick a preset below: a whole experiment that is known to work.")
        return FirstStep(title, False, words)
    return FirstStep(title, True, f"#{run.number} {run.name}", *_open(run))


def _base(run: Run | None) -> FirstStep:
    """The base model is measured."""
    title = _("See what the base model can do")
    if run is None:
        words = _("It is evaluated on held-out prompts before it learns.")
        return FirstStep(title, False, words)
    first = EvalRun.objects.current().filter(run=run).exists()
    url = f"{reverse('runs:rollouts', args=[run.number])}?kind=evaluate"
    words = _("Its first answers appear soon.")
    if first:
        words = _("Its answers stand under Rollouts.")
    return FirstStep(title, first, words, url, _("Rollouts"))


def _result(run: Run | None) -> FirstStep:
    """The run ends; then the list is over."""
    title = _("Watch it learn, and read what changed")
    if run is None:
        words = _("Curves move by themselves; a card sums up at the end.")
        return FirstStep(title, False, words)
    if run.state == RunState.FAILED:
        words = _("It failed: %(reason)s") % {"reason": run.message[:200]}
        return FirstStep(title, False, words, *_open(run))
    words = _("Step %(step)s of %(total)s; a card sums up at the end.")
    values = {"step": f"{run.step:,}", "total": f"{run.total_steps:,}"}
    return FirstStep(title, False, words % values, *_open(run))


def _open(run: Run) -> tuple[str, str]:
    """Address and words of the link to a run."""
    return reverse("runs:detail", args=[run.number]), _("Open #%(number)s") % {"number": run.number}
