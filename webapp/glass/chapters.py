"""The explanation beside a step under glass: each part's formula with the numbers of this step.

Called by `page`. The functions that ran stand beside it, with names and docstrings from the result.
Sentences that depend on the numbers are chosen by the numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from django.utils.translation import gettext as _

from training_core.contract.glass import GlassCompletion, GlassResult, GlassSource, GlassSpec
from webapp.glass.formulas import (
    ADVANTAGE,
    advantage_lines,
    advantage_words,
    earned,
    judged,
    loss_formula,
    loss_lines,
    loss_words,
)
from webapp.ui.wording import format_number, format_score


class Chapter(NamedTuple):
    """One part of the step."""

    title: str
    formula: str
    """As it stands in the papers."""
    lines: list[str]
    """The same with the numbers of this step."""
    words: list[str]
    """What that means."""
    sources: list[GlassSource]
    """The code that ran."""


def write_chapters(spec: GlassSpec, result: GlassResult) -> list[Chapter]:
    """All parts, in the order in which they ran."""
    return [
        _advantages(spec, result),
        _loss(spec, result),
        _gradient(spec, result),
        _move(result),
    ]


def dead_words(spec: GlassSpec, result: GlassResult) -> list[str]:
    """Why a group teaches nothing and what to do; empty for a group that teaches something."""
    if not result.is_dead:
        return []
    return [_why_dead(spec, result), _why_still(spec, result), _advice()]


def _why_dead(spec: GlassSpec, result: GlassResult) -> str:
    """Why no completion has an advantage."""
    if all(one.reward is None for one in result.completions):
        return _(
            "No completion has a reward, so there is nothing to compare: the reasons stand below."
        )
    rewards = {earned(one) for one in judged(result)}
    if len(rewards) == 1:
        words = _(
            "All rewards are %(reward)s: each minus their mean is 0, so every advantage is 0, and "
            "with it the gradient."
        )
        return words % {"reward": format_score(next(iter(rewards)))}
    if rewards and spec.stage.algorithm.advantage == "pass_at_k":
        return _("Several completions share the best reward, so none of them adds to it.")
    if rewards and spec.stage.algorithm.advantage == "max_rl":
        return _("The mean reward is not above 0; this advantage, a share of it, is then 0.")
    return _("The completions whose rewards differ are left out of the loss.")


def _advice() -> str:
    """What to do about it."""
    return _(
        "To see a group that teaches: choose a prompt that the model solves sometimes, raise the "
        "temperature or the number of completions, or take a checkpoint after the warm-up."
    )


def _why_still(spec: GlassSpec, result: GlassResult) -> str:
    """What AdamW does with a gradient of 0."""
    if result.weights_moved == 0:
        return _(
            "AdamW took its step all the same: without moments and without weight decay a gradient "
            "of 0 moves no weight, and no probability has changed."
        )
    words = _(
        "AdamW took its step all the same, and %(moved)s weights moved: by %(cause)s. Nothing of "
        "that was learnt from this group."
    )
    values = {"moved": format_number(result.weights_moved), "cause": _what_moves(spec, result)}
    return words % values


def _what_moves(spec: GlassSpec, result: GlassResult) -> str:
    """What moves weights without a gradient."""
    if result.optimiser_steps and spec.stage.optimiser.weight_decay:
        return _(
            "the moments of earlier steps, which go on pushing and weight decay, which shrinks "
            "every weight"
        )
    if result.optimiser_steps:
        return _("the moments of earlier steps, which go on pushing")
    if spec.stage.optimiser.weight_decay:
        return _("weight decay, which shrinks every weight")
    return _("rounding")


def _advantages(spec: GlassSpec, result: GlassResult) -> Chapter:
    """Rewards to advantages."""
    return Chapter(
        _("Rewards become advantages"),
        ADVANTAGE[spec.stage.algorithm.advantage],
        advantage_lines(spec, result),
        advantage_words(spec, result),
        _ran(result, "advantages"),
    )


def _loss(spec: GlassSpec, result: GlassResult) -> Chapter:
    """Advantages to the loss; the ratio is 1."""
    return Chapter(
        _("Advantages become a loss"),
        loss_formula(spec.stage.algorithm),
        loss_lines(spec, result),
        loss_words(spec, result),
        _ran(result, "surrogate", "reduction"),
    )


def _gradient(spec: GlassSpec, result: GlassResult) -> Chapter:
    """The gradient's norm, and AdamW's settings."""
    norm, limit = result.grad_norm, result.max_grad_norm
    sizes = {"norm": format_number(norm), "limit": format_number(limit)}
    lines = [_("‖g‖ = %(norm)s, the limit is %(limit)s") % sizes]
    words = []
    if not math.isfinite(norm):
        words.append(
            _("The gradient is not finite, so the step was left out: no weight has changed.")
        )
    elif norm == 0:
        words.append(_("There is no gradient: nothing of this group pulls at a weight."))
    elif norm > limit:
        lines.append(_("g is scaled by %(limit)s / %(norm)s") % sizes)
        words.append(_("A gradient longer than the limit is shortened, and keeps its direction."))
    else:
        words.append(_("It is within the limit and is used as it is."))
    lines.append(f"η = {format_number(result.learning_rate)}, {_betas(spec)}")
    if result.optimiser_steps:
        goes_on = _(
            "AdamW goes on with the moments of the %(steps)s updates that the run's stage has "
            "done: at the run's own learning rate this is the update that the run would make on "
            "this group."
        )
        words.append(goes_on % {"steps": format_number(result.optimiser_steps)})
    else:
        words.append(
            _(
                "AdamW begins with fresh moments, so m̂ = g and v̂ = g²: each weight that has a "
                "gradient moves by about η, whatever the gradient's size. Later steps of a run "
                "move less where gradients disagree."
            )
        )
    formula = "θ ← θ − η m̂ / (√v̂ + ε) − η λ θ"
    title = _("The gradient and the step")
    return Chapter(title, formula, lines, words, _ran(result, "optimiser"))


def _betas(spec: GlassSpec) -> str:
    """AdamW's settings."""
    settings = spec.stage.optimiser
    return (
        f"β = {format_number(settings.beta1)}, {format_number(settings.beta2)}, "
        f"ε = {format_number(settings.eps)}, λ = {format_number(settings.weight_decay)}"
    )


def _move(result: GlassResult) -> Chapter:
    """How far weights and policy have moved."""
    distance = _(
        "‖θ_after − θ_before‖ = %(distance)s; %(moved)s of %(total)s weights are not what they were"
    )
    sizes = {
        "distance": format_number(result.weight_change),
        "moved": format_number(result.weights_moved),
        "total": format_number(result.parameters),
    }
    lines = [distance % sizes, _("KL ≈ %(kl)s nats a token") % {"kl": format_number(result.kl)}]
    words = [
        _(
            "The distance is estimated on the sampled tokens alone, from their probabilities "
            "before and after (k3, never below 0)."
        )
    ]
    if result.learning_rate == 0:
        words.append(_("The learning rate is 0: nothing may move, and nothing has."))
    against = [one.index for one in result.completions if goes_against(one)]
    if against:
        stronger = _(
            "Against its advantage moved completion %(places)s: all completions share the same "
            "weights, and here the pull of the others was stronger."
        )
        words.append(stronger % {"places": ", ".join(str(index) for index in against)})
    formula = "KL(before ‖ after) ≈ mean(ρ − 1 − log ρ), ρ = p_after / p_before"
    return Chapter(_("How far it moved"), formula, lines, words, _ran(result, "logprobs"))


def goes_against(one: GlassCompletion) -> bool:
    """Whether a completion better than the mean became less likely, or a worse one likelier."""
    change = sum(one.after) - sum(one.before)
    return one.is_counted and (one.advantage or 0.0) * change < 0


def _ran(result: GlassResult, *parts: str) -> list[GlassSource]:
    """The functions of some parts."""
    return [source for source in result.sources if source.part in parts]
