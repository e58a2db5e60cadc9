"""The policy: one model in float32, its tokenizer, and the copy that samples.

Built by `models.loading`, used by rollouts (sampling), by the losses (log-probabilities) and by
checkpoints. Dropout is off in training too, so sampler and trainer see the same policy. Where the
run computes in bfloat16 the sampler is a bfloat16 copy that `refresh_sampler` brings up to date
after each optimiser step; the weights that learn stay in float32.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from training_core.models.lanes import Lanes
from training_core.models.packing import PackedBatch


@dataclass(frozen=True)
class ModelFacts:
    """What the core must know about a model."""

    ref: str
    """What the spec called it."""
    architecture: str
    """Class name."""
    parameters: int
    """Number of weights; a tied matrix counts once."""
    context_tokens: int
    """Longest sequence."""
    eos_ids: tuple[int, ...]
    """Every token that ends a completion."""
    turn_end_id: int
    """The one that the chat template ends a reply with."""
    pad_id: int
    """Fills rows; never looked at, and may equal an end token."""
    plain_head: bool
    """Whether logits are hidden states times the output matrix and nothing more."""
    shared_prompts: bool
    """Whether completions may share a row with their prompt under a block mask."""
    window_tokens: int | None
    """Tokens that the most short-sighted layer looks at, its own included; None for all."""

    def shares_rows_of(self, longest_tokens: int) -> bool:
        """Whether sequences of up to so many tokens may share rows.

        A row's mask of who sees whom replaces the model's own, windows included: exact only while
        no sequence is longer than a window.
        """
        in_sight = self.window_tokens is None or longest_tokens <= self.window_tokens
        return self.shared_prompts and in_sight


class Policy:
    """A causal language model that is trained."""

    def __init__(self, model: Any, tokenizer: Any, facts: ModelFacts) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.facts = facts
        self.sampler = model
        self.lanes = Lanes()
        self.replicas = [self]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def head(self) -> nn.Linear:
        """The output matrix, in float32."""
        head: nn.Linear = self.model.get_output_embeddings()
        return head

    def parameters(self) -> list[nn.Parameter]:
        """All weights that learn."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def raw_text(self, token_ids: Sequence[int]) -> str:
        """Ids as the text that the model reads and writes, special tokens left in."""
        text: str = self.tokenizer.decode(
            list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def hidden_SD(self, batch: PackedBatch) -> torch.Tensor:
        """Last hidden state at each place that predicts completion tokens; with gradient."""
        hidden_RTD = self.model.base_model(
            input_ids=batch.input_ids_RT,
            position_ids=batch.position_ids_RT,
            attention_mask=batch.mask_R1TT,
            use_cache=False,
        ).last_hidden_state
        found: torch.Tensor = hidden_RTD.flatten(0, 1)[batch.source_S]
        return found

    def logits_SV(self, batch: PackedBatch) -> torch.Tensor:
        """Logits at the same places by the model's own head, for models without a plain one."""
        logits_RTV = self.model(
            input_ids=batch.input_ids_RT,
            position_ids=batch.position_ids_RT,
            attention_mask=batch.mask_R1TT,
            use_cache=False,
        ).logits
        found: torch.Tensor = logits_RTV.flatten(0, 1)[batch.source_S]
        return found

    def sampler_logits_BV(self, **inputs: Any) -> torch.Tensor:
        """Logits of the sampler at the last position (B, V), in float32; updates the cache."""
        if not self.facts.plain_head:
            logits_BV: torch.Tensor = self.sampler(**inputs, logits_to_keep=1).logits[:, -1]
            return logits_BV.float()
        hidden_BD = self.sampler.base_model(**inputs).last_hidden_state[:, -1]
        bias = self.head.bias
        return functional.linear(hidden_BD.float(), self.head.weight.float(), bias)

    def use_sampler_dtype(self, dtype: torch.dtype) -> None:
        """Sample with a copy of the weights in that type, or with the weights themselves.

        Only parameters are cast: a buffer such as the rotary frequencies must stay exact.
        """
        if dtype == next(self.model.parameters()).dtype:
            self.sampler = self.model
            return
        self.sampler = copy.deepcopy(self.model).requires_grad_(False)
        for weight in self.sampler.parameters():
            weight.data = weight.data.to(dtype)

    def use_lanes(self, count: int, threads_each: int = 1) -> None:
        """Compute in that many lanes, each with a replica of this policy.

        A replica has the same weights in memory and gradients of its own.
        """
        self.lanes = Lanes(count, threads_each)
        self.replicas = [self]
        for _ in range(count - 1):
            twin = copy.deepcopy(self.model)
            for own, shared in zip(twin.parameters(), self.model.parameters(), strict=True):
                own.data = shared.data
            self.replicas.append(Policy(twin, self.tokenizer, self.facts))

    def frozen_copy(self) -> Policy:
        """The policy as it is now, never to be changed: it reads in the same lanes, and does not
        sample."""
        frozen = Policy(copy.deepcopy(self.model).requires_grad_(False), self.tokenizer, self.facts)
        frozen.share_lanes(self)
        return frozen

    def share_lanes(self, other: Policy) -> None:
        """Read in the lanes of another policy, so that both cut a batch in the same way.

        A policy without gradients is its own replica in every lane.
        """
        self.lanes, self.replicas = other.lanes, [self] * len(other.replicas)

    def gather_gradients(self) -> None:
        """Add the replicas' gradients to this policy's, in a fixed order, and clear theirs."""
        for replica in self.replicas[1:]:
            for weight, twin in zip(self.parameters(), replica.parameters(), strict=True):
                if twin.grad is not None:
                    weight.grad = twin.grad if weight.grad is None else weight.grad.add_(twin.grad)
                    twin.grad = None

    def clear_gradients(self) -> None:
        """Drop all gradients, those of an abandoned update included."""
        for replica in self.replicas:
            for weight in replica.parameters():
                weight.grad = None

    @torch.no_grad()
    def refresh_sampler(self) -> None:
        """Copy the learnt weights to the sampler; nothing to do when they are the same."""
        if self.sampler is self.model:
            return
        for target, source in zip(self.sampler.parameters(), self.model.parameters(), strict=True):
            target.copy_(source)

    def is_finite(self) -> bool:
        """Whether all weights are numbers: their sum is one only then."""
        return all(math.isfinite(float(weight.detach().sum())) for weight in self.parameters())
