"""The length leaf: a soft punishment of overlong completions (DAPO, arXiv 2503.14476, eq. 13).

With L the completion length, T the target and M the limit, all in tokens:

    0                   for L <= T
    (T - L) / (M - T)   for T < L <= M
    -1                  for L > M

T is the paper's L_max - L_cache and M its L_max. Called by `training_core.rewards.tree`.
"""

from __future__ import annotations

from training_core.contract.rewards import LengthReward
from training_core.rewards.completion import CompletionView, LeafScore, scored


def score_length(spec: LengthReward, view: CompletionView) -> LeafScore:
    """Score one completion between -1 and 0 by its length in tokens."""
    if view.tokens <= spec.target_tokens:
        return scored(0.0, f"{view.tokens} tokens, within {spec.target_tokens}")
    if view.tokens >= spec.limit_tokens:
        return scored(-1.0, f"{view.tokens} tokens, at or over the limit of {spec.limit_tokens}")
    slope = (spec.target_tokens - view.tokens) / (spec.limit_tokens - spec.target_tokens)
    return scored(slope, f"{view.tokens} tokens, {view.tokens - spec.target_tokens} over target")
