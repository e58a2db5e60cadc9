"""How rewards become advantages and advantages a loss, in the numbers of one step under glass.

Called by `chapters`. A formula for each choice of an algorithm; what it gives is computed here from
the completions of the result and stands beside what training reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training_core.contract.algorithms import GroupRelativeSpec
from training_core.contract.glass import GlassCompletion, GlassResult, GlassSpec
from webapp.glass.tokens import signed
from webapp.ui.wording import format_number

SHOWN_TERMS = 4
ADVANTAGE = {
    "group_std": "Aᵢ = (rᵢ − mean) / (std + ε)",
    "group_mean": "Aᵢ = rᵢ − mean",
    "batch_std": "Aᵢ = (rᵢ − mean) / (std_batch + ε)",
    "leave_one_out": "Aᵢ = rᵢ − (Σ r − rᵢ) / (n − 1)",
    "per_reward": "Aᵢ = (Sᵢ − mean S) / (std S + ε), Sᵢ = Σₖ wₖ (rᵢₖ − meanₖ) / stdₖ",
    "pass_at_k": "A_best = (best − second) / (std + ε), Aᵢ = 0",
    "max_rl": "Aᵢ = (rᵢ − mean) / mean",
    "whitened": "Aᵢₜ = (Rᵢₜ − mean_tokens R) / √(var_tokens R + ε)",
    "group_mean_whitened": "Aᵢₜ = (bᵢ − mean_tokens b) / √(var_tokens b + ε), bᵢ = rᵢ − mean",
}
OVER_BATCH = frozenset({"batch_std", "per_reward", "whitened", "group_mean_whitened"})
"""Advantages that look beyond the group."""
SUM = {
    "token_mean": "−(1/N) Σᵢ Σₜ",
    "sequence_mean": "−(1/B) Σᵢ (1/|oᵢ|) Σₜ",
    "constant": "−(1/(B·L)) Σᵢ Σₜ",
}
OF_TOKEN = {
    "clip": "min(ρᵢₜ Aᵢₜ, clip(ρᵢₜ, 1 − ε_low, 1 + ε_high) Aᵢₜ)",
    "cispo": "sg[clip(ρᵢₜ, 1 − ε_low, 1 + ε_high)] Aᵢₜ log πᵢₜ",
    "reinforce": "Aᵢₜ log πᵢₜ",
}
RATIO = {"sequence": ", ρᵢ = exp(mean_t log ρᵢₜ)", "trajectory": ", ρᵢ = exp(Σₜ log ρᵢₜ)"}


def advantage_lines(spec: GlassSpec, result: GlassResult) -> list[str]:
    """Mean, deviation, and the formula for the completion that stands out most."""
    scored = judged(result)
    over = _("mean = %(mean)s over %(count)s scored completions")
    lines = [over % {"mean": format_number(result.reward_mean), "count": len(scored)}]
    if result.reward_std is not None:
        eps = format_number(result.std_eps)
        lines.append(f"std = {format_number(result.reward_std)} (n − 1), ε = {eps}")
    shown = max(scored, key=lambda one: abs(one.advantage or 0.0), default=None)
    if shown is not None and shown.advantage:
        terms = _terms(spec.stage.algorithm, shown, result)
        value = f"{terms} = {signed(shown.advantage)}" if terms else signed(shown.advantage)
        words = _("A of completion %(place)s = %(terms)s")
        lines.append(words % {"place": shown.index, "terms": value})
    return lines


def advantage_words(spec: GlassSpec, result: GlassResult) -> list[str]:
    """What an advantage compares, and who is left out."""
    words = [_("Each completion is compared with the others of its group, not with a fixed bar.")]
    if spec.stage.algorithm.advantage in OVER_BATCH:
        words.append(_("In a run it is compared over the whole step; here that is this one group."))
    unscored = sum(one.reward is None for one in result.completions)
    if unscored:
        left_out = _("%(count)s unscored: in neither mean nor std, and without a gradient.")
        words.append(left_out % {"count": unscored})
    masked = sum(one.reward is not None and not one.is_counted for one in result.completions)
    if masked:
        left_out = _("%(count)s cut off and masked: in no mean, and without a gradient.")
        words.append(left_out % {"count": masked})
    penalised = [one for one in judged(result) if earned(one) != one.reward]
    if penalised:
        came_off = ngettext(
            "The overlong penalty came off %(count)s reward before it is compared.",
            "The overlong penalty came off %(count)s rewards before they are compared.",
            len(penalised),
        )
        words.append(came_off % {"count": len(penalised)})
    return words


def judged(result: GlassResult) -> list[GlassCompletion]:
    """Completions that have a say."""
    return [one for one in result.completions if one.is_counted]


def earned(one: GlassCompletion) -> float:
    """What a completion with a say trains with."""
    reward = one.reward if one.trained_reward is None else one.trained_reward
    return 0.0 if reward is None else reward


def _terms(spec: GroupRelativeSpec, one: GlassCompletion, result: GlassResult) -> str:
    """The formula with the numbers of one completion; empty where it takes more than these."""
    reward, mean = format_number(earned(one)), _in_brackets(result.reward_mean)
    std = f"({format_number(result.reward_std)} + {format_number(result.std_eps)})"
    if spec.advantage in {"group_std", "batch_std"}:
        return f"({reward} − {mean}) / {std}"
    if spec.advantage == "group_mean":
        return f"{reward} − {mean}"
    if spec.advantage == "max_rl":
        return f"({reward} − {mean}) / {mean}"
    if spec.advantage == "leave_one_out":
        others = [earned(other) for other in judged(result) if other.index != one.index]
        return f"{reward} − {_in_brackets(math.fsum(others) / len(others))}"
    if spec.advantage == "pass_at_k":
        rewards = sorted((earned(each) for each in judged(result)), reverse=True)
        return f"({format_number(rewards[0])} − {_in_brackets(rewards[1])}) / {std}"
    return ""


def _in_brackets(value: float | None) -> str:
    """A number, in brackets when it is negative."""
    words = format_number(value)
    return f"({words})" if words.startswith("−") else words


def loss_formula(spec: GroupRelativeSpec) -> str:
    """The loss as papers write it."""
    ratio = RATIO.get(spec.ratio, "") if spec.surrogate != "reinforce" else ""
    return f"L = {SUM[spec.reduction]} {OF_TOKEN[spec.surrogate]}{ratio}"


def loss_lines(spec: GlassSpec, result: GlassResult) -> list[str]:
    """The loss in numbers, and what training reports."""
    algorithm = spec.stage.algorithm
    counted = judged(result)
    shares = [_share(algorithm, one) for one in counted]
    divisor = divisor_of(spec, result)
    pairs = zip(counted, shares, strict=True)
    total = math.fsum((one.advantage or 0.0) * share for one, share in pairs)
    n = format_number(divisor)
    lines = [_("ρ = 1 for every token: the policy that is updated is the one that sampled")]
    if algorithm.reduction == "constant":
        size = _("B·L = %(count)s completions × %(longest)s tokens")
        longest = format_number(spec.stage.sampling.max_new_tokens)
        lines.append(size % {"count": len(counted), "longest": longest})
    lines += [
        f"L = −(1/{n}) · ({_sum_of(counted, shares)})",
        f"L = −({format_number(total)}) / {n} = {format_number(-total / divisor)}",
        _("training reports: loss = %(loss)s") % {"loss": format_number(result.loss)},
    ]
    return lines


def divisor_of(spec: GlassSpec, result: GlassResult) -> int:
    """What the sum of the loss is divided by."""
    match spec.stage.algorithm.reduction:
        case "token_mean":
            return result.divisor_tokens
        case "sequence_mean":
            return max(1, len(judged(result)))
        case _:
            return max(1, len(judged(result))) * spec.stage.sampling.max_new_tokens


def _share(spec: GroupRelativeSpec, one: GlassCompletion) -> float:
    """What a completion's advantage is multiplied by: its tokens, or their log-probability."""
    size = float(len(one.token_ids)) if spec.surrogate == "clip" else math.fsum(one.before)
    return size / max(1, len(one.token_ids)) if spec.reduction == "sequence_mean" else size


def _sum_of(counted: Sequence[GlassCompletion], shares: Sequence[float]) -> str:
    """The first terms of the sum."""
    terms = [
        f"({format_number(one.advantage)})·{_in_brackets(share)}"
        for one, share in zip(counted, shares, strict=True)
        if one.advantage
    ]
    more = " + …" if len(terms) > SHOWN_TERMS else ""
    return f"{' + '.join(terms[:SHOWN_TERMS]) or '0'}{more}"


def loss_words(spec: GlassSpec, result: GlassResult) -> list[str]:
    """What the bounds do, and what else is in the loss of a run."""
    algorithm = spec.stage.algorithm
    words = [
        _bound_words(algorithm)
        % {
            "low": format_number(1 - algorithm.clip_low),
            "high": format_number(1 + algorithm.clip_high),
            "next_clip": _next_clip(result),
        },
        _(
            "Every token of a completion carries the same advantage: nobody says which token "
            "earned it."
        ),
    ]
    if algorithm.divergence.coefficient:
        words.append(
            _(
                "The pull to the reference is 0 here: in the first step of a stage policy and "
                "reference are equal."
            )
        )
    if algorithm.entropy_coefficient or algorithm.correction.level != "off":
        words.append(
            _(
                "The entropy bonus and the correction of the sampler are in what training reports, "
                "and not in the lines above."
            )
        )
    return words


def _bound_words(spec: GroupRelativeSpec) -> str:
    """What the bounds of a surrogate are for; to be filled in."""
    if spec.surrogate == "reinforce":
        return _("There is no ratio in this loss, and so nothing to clip.")
    if spec.surrogate == "cispo":
        return _(
            "The weight ρ is held within [%(low)s, %(high)s] and has no gradient of its own: every "
            "token keeps one, however far the policy has moved. %(next_clip)s"
        )
    return _(
        "The clip to [%(low)s, %(high)s] keeps a policy that is updated several times on one batch "
        "near the one that sampled. In a single update there is no such distance, so nothing is "
        "clipped. %(next_clip)s"
    )


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
