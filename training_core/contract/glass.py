"""One step under glass: what is asked for, and what the process that takes the step writes down.

    spec.json      GlassSpec: the model, the prompt, the rewards, the settings of the step
    live.json      GlassProgress while it works: the phase, and the completions as they grow
    result.json    GlassResult, whole or not there; for a tryout a TryoutResult
    end.json       GlassEnd: how it ended, in words
    console.log    what the process printed

Written by `workers.glass_main` (the spec by the worker that starts it), read by `webapp.glass`.
Nothing here touches a run: the step is taken on a copy of the weights in memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError

from training_core.contract.domains import DomainSpec, Message
from training_core.contract.rewards import RewardSpec
from training_core.contract.rollouts import FinishReason, RewardScore
from training_core.contract.rundir import write_atomic
from training_core.contract.spec import ModelSpec, ResourceSpec
from training_core.contract.stages import RlStage
from training_core.contract.strict import StrictModel, WireModel
from training_core.contract.tryout import TryoutResult, TryoutSpec

MOST_COMPLETIONS = 32
"""Largest group that people can still look at."""
MOST_NEW_TOKENS = 256
"""Longest completion of a step under glass."""

GlassPhase = Literal["load", "sample", "score", "before", "update", "after"]
Clip = Literal["", "low", "high"]


class DomainPrompt(StrictModel):
    """A training prompt of a domain."""

    type: Literal["domain"] = "domain"
    """Kind of prompt."""
    domain: DomainSpec
    """Where it comes from."""
    index: int = Field(default=0, ge=0, le=10**9)
    """Number of the prompt on the training side, from 0."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of the run whose prompt it is."""


class OwnPrompt(StrictModel):
    """A prompt that somebody wrote."""

    type: Literal["own"] = "own"
    """Kind of prompt."""
    messages: tuple[Message, ...] = Field(min_length=1)
    """The chat turns; the last one is the user's."""
    answer: str
    """The right answer, for the rewards."""


class GlassSpec(StrictModel):
    """One group and one gradient step."""

    kind: Literal["step"] = "step"
    """Told apart from a tryout."""
    spec_version: Literal[1] = 1
    """Version of this document's form."""
    model: ModelSpec
    """The base model."""
    checkpoint: str = ""
    """Directory of a checkpoint, relative to its run directory; empty for the base model."""
    keeps_moments: bool = False
    """Whether AdamW goes on with the checkpoint's moments, as the run itself would."""
    prompt: Annotated[DomainPrompt | OwnPrompt, Field(discriminator="type")]
    """What is completed."""
    reward: RewardSpec
    """What a completion is worth."""
    stage: RlStage
    """Group size, sampling, algorithm and optimiser, as an rl stage has them."""
    resources: ResourceSpec = ResourceSpec()
    """Device, precision, memory."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of the completions."""


def _kind_of(value: Any) -> str:
    """Which request a document is; one without a kind is a step."""
    kind = value.get("kind", "step") if isinstance(value, dict) else getattr(value, "kind", "step")
    return str(kind)


GlassRequest = Annotated[
    Annotated[GlassSpec, Tag("step")] | Annotated[TryoutSpec, Tag("tryout")],
    Discriminator(_kind_of),
]
REQUEST: TypeAdapter[GlassSpec | TryoutSpec] = TypeAdapter(GlassRequest)
"""Reads either request."""


class GlassProgress(WireModel):
    """How far the step is."""

    phase: GlassPhase
    """What is being done."""
    done: int
    """Items of it that are done."""
    total: int
    """Items to do; 0 when unknown."""
    messages: tuple[Message, ...] = ()
    """The prompt, once it is known; empty in a tryout, whose rows the spec holds."""
    texts: tuple[str, ...] = ()
    """The completions so far, special tokens left in; in a tryout row after row."""


class GlassCompletion(WireModel):
    """One completion of the group, token by token. Lists have one entry a token."""

    index: int
    """Position inside the group, from 0."""
    text: str
    """The text without special tokens, as rewards saw it."""
    finish_reason: FinishReason
    """How it ended; `length` means cut at the limit."""
    scores: tuple[RewardScore, ...]
    """One entry for each reward leaf."""
    reward: float | None
    """Total reward; null when unscored."""
    trained_reward: float | None = None
    """The reward less the overlong penalty; null when it has no say, and in results that were
    written before there was such a penalty."""
    advantage: float | None
    """What weighted its gradient, mean over its tokens; null when it has no say."""
    is_counted: bool
    """Whether its tokens are in the divisor of the loss."""
    token_ids: tuple[int, ...]
    """The sampled tokens."""
    pieces: tuple[str, ...]
    """Their texts, which joined give the completion. Empty for a token that ends inside a
    character: the text stands at the token that completes it."""
    before: tuple[float, ...]
    """Log-probability of each token before the step, in nats, at the sampling temperature."""
    after: tuple[float, ...]
    """The same after the step."""
    next_clip: tuple[Clip, ...]
    """Where a second update on the same group would clip the ratio, and on which side."""


class GlassSource(WireModel):
    """A function that ran, so that the page can show where its formula stands."""

    part: Literal["advantages", "surrogate", "reduction", "update", "optimiser", "logprobs"]
    """Which part of the step it is."""
    function: str
    """Dotted name."""
    file: str
    """File below the repository."""
    line: int
    """Where it begins."""
    doc: str
    """Its docstring: formula, units, paper."""


class GlassResult(WireModel):
    """Everything about one step."""

    version: Literal[1] = 1
    """Version of this document's form."""
    architecture: str
    """Class name of the model."""
    parameters: int
    """Weights of the model."""
    device: str
    """Device in words."""
    compute_dtype: str
    """Type of matrix products."""
    domain: str
    """Domain of the prompt; empty for one's own."""
    messages: tuple[Message, ...]
    """The prompt."""
    prompt_tokens: int
    """Its length in tokens."""
    answer: str
    """The right answer."""
    completions: tuple[GlassCompletion, ...] = Field(min_length=1)
    """The group."""
    reward_mean: float | None
    """Mean reward of the completions that have a say; null without any."""
    reward_std: float | None
    """Standard deviation (n - 1) of their rewards; null below two."""
    std_eps: float
    """Added to the standard deviation before an advantage is divided by it."""
    divisor_tokens: int
    """Completion tokens that the loss is divided by."""
    loss: float
    """Loss before the step, as training reports it."""
    grad_norm: float
    """Norm of the gradient before clipping; NaN when it was not finite and nothing was done."""
    max_grad_norm: float
    """The gradient was scaled down to this norm where it was larger."""
    learning_rate: float
    """Rate of the step."""
    optimiser_steps: int
    """Steps that AdamW had done before, with the moments that it kept; 0 for fresh ones."""
    kl: float
    """Estimated distance of the policy after the step from the one before, in nats a token."""
    weight_change: float
    """Norm of the difference of all weights."""
    weights_moved: int
    """Weights that are not what they were."""
    seconds: dict[str, float]
    """Phase to the time that it took, in seconds."""
    sources: tuple[GlassSource, ...]
    """The code that ran."""

    @property
    def is_dead(self) -> bool:
        """Whether no completion has an advantage, so that the gradient is 0."""
        return not any(one.advantage for one in self.completions if one.is_counted)


class GlassEnd(WireModel):
    """How it ended."""

    outcome: Literal["done", "failed"]
    """In a word."""
    cause: str
    """Stable short name of the reason."""
    message: str
    """A sentence for people."""
    advice: str = ""
    """What to do about it."""


class GlassDir:
    """Typed access to the directory of one step or one tryout."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @property
    def console_file(self) -> Path:
        """What the process printed."""
        return self.root / "console.log"

    @property
    def result_file(self) -> Path:
        """The result."""
        return self.root / "result.json"

    def begin(self, spec: GlassSpec | TryoutSpec) -> None:
        """Write the spec and forget what an earlier try has left. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        for name in ("live.json", "result.json", "end.json"):
            (self.root / name).unlink(missing_ok=True)
        write_atomic(self.root / "spec.json", spec.model_dump_json(indent=2).encode())

    def read_spec(self) -> GlassSpec | TryoutSpec:
        """The spec. Raises pydantic.ValidationError or OSError."""
        return REQUEST.validate_json((self.root / "spec.json").read_bytes())

    def write_progress(self, progress: GlassProgress) -> None:
        """Replace the progress. Not forced to disk: it is worth nothing after a crash."""
        aside = self.root / f".tmp-live-{os.getpid()}"
        aside.write_text(progress.model_dump_json())
        aside.rename(self.root / "live.json")

    def find_progress(self) -> GlassProgress | None:
        """The progress; None before the first."""
        try:
            return GlassProgress.model_validate_json((self.root / "live.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def write_result(self, result: GlassResult | TryoutResult) -> None:
        """Write the result whole. Raises OSError."""
        write_atomic(self.result_file, result.model_dump_json().encode())

    def read_result(self) -> GlassResult:
        """The result of a step. Raises pydantic.ValidationError or OSError."""
        return GlassResult.model_validate_json(self.result_file.read_bytes())

    def read_tryout(self) -> TryoutResult:
        """The result of a tryout. Raises pydantic.ValidationError or OSError."""
        return TryoutResult.model_validate_json(self.result_file.read_bytes())

    def write_end(self, end: GlassEnd) -> None:
        """Say how it ended. Raises OSError."""
        write_atomic(self.root / "end.json", end.model_dump_json().encode())

    def find_end(self) -> GlassEnd | None:
        """How it ended; None when the process did not get to say."""
        try:
            return GlassEnd.model_validate_json((self.root / "end.json").read_bytes())
        except (OSError, ValidationError):
            return None
