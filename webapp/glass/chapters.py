"""The explanation beside a step under glass: each part's formula with the numbers of this step.

Called by `page`. The formulas are those of the functions that ran, whose names and docstrings the
result carries; only where a formula is the same for every algorithm of this page is it spelled out
here. Sentences that depend on the numbers are chosen by the numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from django.utils.translation import gettext as _

from training_core.contract.glass import GlassCompletion, GlassResult, GlassSource, GlassSpec
from webapp.glass.tokens import signed
from webapp.ui.wording import format_number, format_score

SHOWN_TERMS = 4


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
    rewards = {one.reward for one in result.completions if one.reward is not None}
    if not rewards:
        why = _(
            "No completion has a reward, so there is nothing to compare: the reasons stand below."
        )
    elif len(rewards) == 1:
        words = _(
            "All rewards are %(reward)s: each minus their mean is 0, so every advantage is 0, and "
            "with it the gradient."
        )
        why = words % {"reward": format_score(next(iter(rewards)))}
    else:
        why = _("The completions whose rewards differ are left out of the loss.")
    advice = _(
        "To see a group that teaches: choose a prompt that the model solves sometimes, raise the "
        "temperature or the number of completions, or take a checkpoint after the warm-up."
    )
    return [why, _why_still(spec, result), advice]


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
    by_std = spec.stage.algorithm.advantage == "group_std"
    mean, std = result.reward_mean, result.reward_std
    scored = [one for one in result.completions if one.reward is not None]
    formula = "Aᵢ = (rᵢ − mean) / (std + ε)" if by_std else "Aᵢ = rᵢ − mean"
    over = _("mean = %(mean)s over %(count)s scored completions")
    lines = [over % {"mean": format_number(mean), "count": len(scored)}]
    if std is not None:
        eps = format_number(result.std_eps)
        lines.append(f"std = {format_number(std)} (n − 1), ε = {eps}")
    shown = max(scored, key=lambda one: abs(one.advantage or 0.0), default=None)
    if shown is not None and shown.advantage:
        lines.append(_one_advantage(shown, result, by_std))
    unscored = len(result.completions) - len(scored)
    words = [_("Each completion is compared with the others of its group, not with a fixed bar.")]
    if unscored:
        left_out = _("%(count)s unscored: in neither mean nor std, and without a gradient.")
        words.append(left_out % {"count": unscored})
    title = _("Rewards become advantages")
    return Chapter(title, formula, lines, words, _ran(result, "advantages"))


def _one_advantage(one: GlassCompletion, result: GlassResult, by_std: bool) -> str:
    """The formula for one completion."""
    mean = format_number(result.reward_mean)
    above = f"{format_number(one.reward)} − {f'({mean})' if mean.startswith('−') else mean}"
    value = signed(one.advantage or 0.0)
    if not by_std:
        terms = f"{above} = {value}"
    else:
        below = f"{format_number(result.reward_std)} + {format_number(result.std_eps)}"
        terms = f"({above}) / ({below}) = {value}"
    return _("A of completion %(place)s = %(terms)s") % {"place": one.index, "terms": terms}


def _loss(spec: GlassSpec, result: GlassResult) -> Chapter:
    """Advantages to the loss; the ratio is 1."""
    algorithm = spec.stage.algorithm
    low, high = format_number(1 - algorithm.clip_low), format_number(1 + algorithm.clip_high)
    counted = [one for one in result.completions if one.is_counted and one.advantage]
    terms = [f"({format_number(one.advantage)})·{len(one.token_ids)}" for one in counted]
    more = " + …" if len(terms) > SHOWN_TERMS else ""
    total = math.fsum((one.advantage or 0.0) * len(one.token_ids) for one in counted)
    n = format_number(result.divisor_tokens)
    lines = [
        _("ρ = 1 for every token: the policy that is updated is the one that sampled"),
        f"L = −(1/{n}) · ({' + '.join(terms[:SHOWN_TERMS]) or '0'}{more})",
        f"L = −({format_number(total)}) / {n} = {format_number(-total / result.divisor_tokens)}",
        _("training reports: loss = %(loss)s") % {"loss": format_number(result.loss)},
    ]
    clip = _(
        "The clip to [%(low)s, %(high)s] keeps a policy that is updated several times on one batch "
        "near the one that sampled. In a single update there is no such distance, so nothing is "
        "clipped. %(next_clip)s"
    )
    words = [
        clip % {"low": low, "high": high, "next_clip": _next_clip(result)},
        _(
            "Every token of a completion carries the same advantage: nobody says which token "
            "earned it."
        ),
    ]
    sources = _ran(result, "surrogate", "reduction")
    formula = "L = −(1/N) Σᵢ Σₜ min(ρᵢₜ Aᵢ, clip(ρᵢₜ, 1 − ε_low, 1 + ε_high) Aᵢ)"
    return Chapter(_("Advantages become a loss"), formula, lines, words, sources)


def _next_clip(result: GlassResult) -> str:
    """What a second update would find."""
    sides = [clip for one in result.completions for clip in one.next_clip]
    clipped = sum(bool(clip) for clip in sides)
    tokens = format_number(len(sides))
    if not clipped:
        words = _(
            "A second update on this group would not clip any of its %(tokens)s tokens either."
        )
        return words % {"tokens": tokens}
    words = _(
        "A second update on this group would clip %(clipped)s of its %(tokens)s tokens; they are "
        "underlined with dots."
    )
    return words % {"clipped": format_number(clipped), "tokens": tokens}


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
