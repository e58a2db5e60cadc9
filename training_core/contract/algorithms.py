"""Algorithms of an rl stage: how rewards become a gradient.

An algorithm is four independent choices (advantage, ratio, surrogate, reduction) with what may be
added to them (divergence from a reference, entropy bonus, correction of the sampler, dynamic
sampling, penalties for overlong completions). Each named algorithm is a class that sets all of
them, epsilons included, as its paper does; any field may be changed by itself. `docs/training.md`
has the formulas as they are implemented in `training_core.losses`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from training_core.contract.strict import SpecFault, StrictModel

GroupAdvantage = Literal[
    "group_std",
    "group_mean",
    "batch_std",
    "leave_one_out",
    "per_reward",
    "pass_at_k",
    "max_rl",
    "whitened",
    "group_mean_whitened",
]
Ratio = Literal["token", "sequence", "trajectory"]
Surrogate = Literal["reinforce", "clip", "cispo"]
Reduction = Literal["token_mean", "sequence_mean", "constant"]
Estimator = Literal["k1", "k2", "k3"]


class DivergenceSpec(StrictModel):
    """A pull back to the reference: the policy as it was when the stage began."""

    coefficient: float = Field(default=0.0, ge=0, le=100)
    """Weight beta of the divergence, per nat; 0 turns it off, and no reference is kept."""
    estimator: Estimator = "k3"
    """With d = log pi - log reference: k1 is d, k2 is d^2 / 2, k3 is exp(-d) + d - 1."""
    place: Literal["loss", "reward"] = "loss"
    """Whether its gradient is followed, or it is taken off the reward of each token."""
    importance_weighted: bool = False
    """In the loss: times the probability ratio, which makes its gradient right off-policy."""
    target_nats: float | None = Field(default=None, gt=0, le=100)
    """Adapt the coefficient so that the mean divergence per token goes here; null keeps it."""
    horizon_rollouts: int = Field(default=10_000, ge=1, le=10**9)
    """How slowly the coefficient adapts: rollouts over which it may change by a fifth."""

    @model_validator(mode="after")
    def check_gradient(self) -> Self:
        """An option that would do nothing is refused, not ignored."""
        if self.coefficient == 0:
            return self
        if self.place == "loss" and self.estimator == "k1" and not self.importance_weighted:
            raise SpecFault(
                "estimator",
                "k1 in the loss has a mean gradient of 0 and pulls nowhere; take k2 or k3, weigh "
                "it by importance, or put it into the reward",
            )
        if self.place == "reward" and self.importance_weighted:
            raise SpecFault(
                "importance_weighted", "only a divergence in the loss can be weighed by importance"
            )
        return self

    def is_in(self, place: Literal["loss", "reward"]) -> bool:
        """Whether it does anything there."""
        return self.coefficient > 0 and self.place == place


class CorrectionSpec(StrictModel):
    """Truncated importance weights for a sampler that is not quite the policy that learns.

    Sampling in bfloat16, or with weights of a step before, gives completions of another policy.
    """

    level: Literal["off", "token", "sequence"] = "off"
    """Weigh each token by its own ratio, or by that of its completion."""
    cap: float = Field(default=2.0, gt=0, le=1000)
    """Largest weight; the ratio is policy before the update over sampler."""


AdvantageField = Annotated[
    GroupAdvantage,
    Field(
        description="How a rollout is judged: against its group's mean, divided by the group's "
        "deviation or not; by the deviation of the batch; against the mean of the others; each "
        "reward by itself; only the best against the second; by the group's mean (max_rl); or "
        "normalised over all tokens of the batch."
    ),
]
RatioField = Annotated[
    Ratio,
    Field(
        description="Probability now over probability when sampled: of each token, of the "
        "completion as the mean over its tokens, or of the completion as a whole."
    ),
]
SurrogateField = Annotated[
    Surrogate,
    Field(
        description="Log-probability times advantage; the ratio times advantage, clipped; or "
        "log-probability times advantage, weighed by the clipped ratio without a gradient."
    ),
]
ReductionField = Annotated[
    Reduction,
    Field(
        description="Mean over all tokens of the update; mean over completions of each one's mean; "
        "or sum divided by completions times max_new_tokens."
    ),
]
ClipLow = Annotated[
    float, Field(gt=0, le=1, description="The ratio is clipped below 1 - clip_low.")
]
ClipHigh = Annotated[
    float, Field(gt=0, le=100, description="The ratio is clipped above 1 + clip_high.")
]
DualClip = Annotated[
    float | None,
    Field(
        gt=1,
        le=1000,
        description="With a negative advantage the loss is at most this many times its size; null "
        "for no such bound.",
    ),
]
InnerEpochs = Annotated[
    int, Field(ge=1, le=16, description="How often each batch of rollouts is gone through.")
]
DynamicSampling = Annotated[
    bool,
    Field(
        description="Whether groups whose rewards are all equal are replaced by groups of further "
        "prompts; what is sampled too much is used in the next step."
    ),
]
OverlongFrac = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Last share of max_new_tokens in which the overlong penalty grows; 0 for none.",
    ),
]


class PolicyGradientSpec(StrictModel):
    """What all algorithms can do."""

    ratio: RatioField = "token"
    surrogate: SurrogateField = "clip"
    clip_low: ClipLow = 0.2
    clip_high: ClipHigh = 0.2
    dual_clip: DualClip = None
    reduction: ReductionField = "token_mean"
    inner_epochs: InnerEpochs = 1
    minibatches: int = Field(default=1, ge=1, le=1024)
    """Optimiser updates in each pass over the batch of rollouts."""
    mask_truncated: bool = False
    """Whether truncated completions are left out: of the loss, of the divisor, of the baseline."""
    overlong_frac: OverlongFrac = 0.0
    overlong_penalty: float = Field(default=1.0, ge=0, le=1000)
    """Taken off the reward of a completion of max_new_tokens; linearly less before that."""
    dynamic_sampling: DynamicSampling = False
    most_sampling_rounds: int = Field(default=4, ge=1, le=100)
    """Rounds of dynamic sampling after which a step trains with what it has."""
    divergence: DivergenceSpec = DivergenceSpec()
    """Pull back to the policy that the stage began with."""
    entropy_coefficient: float = Field(default=0.0, ge=0, le=10)
    """Weight of the entropy that is added to what is maximised, per nat."""
    correction: CorrectionSpec = CorrectionSpec()
    """Importance weights for what the sampler did differently."""

    @model_validator(mode="before")
    @classmethod
    def keep_defaults(cls, given: Any) -> Any:
        """Who changes one setting of the divergence keeps the algorithm's others."""
        if isinstance(given, dict) and isinstance(given.get("divergence"), dict):
            own = cls.model_fields["divergence"].default.model_dump()
            return given | {"divergence": own | given["divergence"]}
        return given

    @model_validator(mode="after")
    def check_choices(self) -> Self:
        """An option that would do nothing is refused, not ignored."""
        if self.dual_clip is not None and self.surrogate != "clip":
            raise SpecFault("dual_clip", "only the surrogate clip has a second bound")
        if self.dual_clip is not None and self.dual_clip <= 1 + self.clip_high:
            raise SpecFault("dual_clip", "must be above 1 + clip_high")
        if self.surrogate == "reinforce" and self.ratio != "token":
            raise SpecFault("ratio", "the surrogate reinforce has no ratio; leave it at token")
        return self


class GroupRelativeSpec(PolicyGradientSpec):
    """Algorithms that judge a rollout by the others of its group or batch."""

    advantage: AdvantageField = "group_std"

    @model_validator(mode="after")
    def check_advantage(self) -> Self:
        """A penalty for the whole completion has no place among rewards judged one by one."""
        if self.advantage == "per_reward" and self.divergence.is_in("reward"):
            raise SpecFault(
                "divergence.place",
                "with the advantage per_reward the divergence can only be in the loss",
            )
        return self


class GrpoSpec(GroupRelativeSpec):
    """Each rollout against its group's mean and deviation (Shao et al. 2024, arXiv 2402.03300).

    The mean runs over tokens, as in DAPO, where the paper takes that of each completion first.
    """

    type: Literal["grpo"] = "grpo"
    """Name of the algorithm."""


class DrGrpoSpec(GroupRelativeSpec):
    """GRPO without deviation, with a constant divisor (Liu et al. 2025, arXiv 2503.20783)."""

    type: Literal["dr_grpo"] = "dr_grpo"
    """Name of the algorithm."""
    advantage: AdvantageField = "group_mean"
    reduction: ReductionField = "constant"


class DapoSpec(GroupRelativeSpec):
    """GRPO with a wider upper clip and dynamic sampling (Yu et al. 2025, arXiv 2503.14476)."""

    type: Literal["dapo"] = "dapo"
    """Name of the algorithm."""
    clip_high: ClipHigh = 0.28
    dynamic_sampling: DynamicSampling = True
    overlong_frac: OverlongFrac = 0.2


class GspoSpec(GroupRelativeSpec):
    """GRPO with the ratio of whole completions (Zheng et al. 2025, arXiv 2507.18071)."""

    type: Literal["gspo"] = "gspo"
    """Name of the algorithm."""
    ratio: RatioField = "sequence"
    clip_low: ClipLow = 3e-4
    clip_high: ClipHigh = 4e-4
    reduction: ReductionField = "sequence_mean"


class CispoSpec(GroupRelativeSpec):
    """Clipped weights leave every token a gradient (MiniMax 2025, arXiv 2506.13585)."""

    type: Literal["cispo"] = "cispo"
    """Name of the algorithm."""
    surrogate: SurrogateField = "cispo"
    clip_low: ClipLow = 1.0
    clip_high: ClipHigh = 4.0


class RlooSpec(GroupRelativeSpec):
    """Each rollout against the mean of the others (Ahmadian et al. 2024, arXiv 2402.14740)."""

    type: Literal["rloo"] = "rloo"
    """Name of the algorithm."""
    advantage: AdvantageField = "leave_one_out"
    ratio: RatioField = "trajectory"
    reduction: ReductionField = "sequence_mean"
    divergence: DivergenceSpec = DivergenceSpec(coefficient=0.05, estimator="k1", place="reward")
    """Pull back to the policy that the stage began with."""


class ReinforcePlusPlusSpec(GroupRelativeSpec):
    """Returns normalised over the tokens of the batch (Hu et al. 2025, arXiv 2501.03262)."""

    type: Literal["reinforce_plus_plus"] = "reinforce_plus_plus"
    """Name of the algorithm."""
    advantage: AdvantageField = "whitened"
    divergence: DivergenceSpec = DivergenceSpec(coefficient=0.01, estimator="k1", place="reward")
    """Pull back to the policy that the stage began with."""


class ReinforcePlusPlusBaselineSpec(GroupRelativeSpec):
    """The group's mean off, then normalised over tokens (Hu et al. 2025, arXiv 2501.03262)."""

    type: Literal["reinforce_plus_plus_baseline"] = "reinforce_plus_plus_baseline"
    """Name of the algorithm."""
    advantage: AdvantageField = "group_mean_whitened"
    divergence: DivergenceSpec = DivergenceSpec(coefficient=0.001, estimator="k2")
    """Pull back to the policy that the stage began with."""


AlgorithmSpec = Annotated[
    GrpoSpec
    | DrGrpoSpec
    | DapoSpec
    | GspoSpec
    | CispoSpec
    | RlooSpec
    | ReinforcePlusPlusSpec
    | ReinforcePlusPlusBaselineSpec,
    Field(discriminator="type"),
]
