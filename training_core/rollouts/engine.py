"""The generation engine: completions of many prompts, decoded together.

Called by `rollouts.collect` for training and evaluation. Each prompt is read once, what all prompts
begin with once for them all (`rollouts.prefill`). Completions of one prompt are decoded as one row
for as long as they are equal and get rows of their own where they part (`rollouts.tree`); groups of
different prompts decode in one batch; finished rows leave it. A completion depends on its seed, not
on its neighbours (up to rounding, since matrix kernels sum in an order that follows the batch's
shape).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from training_core.contract.rollouts import FinishReason
from training_core.failures import BadData
from training_core.models.policy import Policy
from training_core.rollouts.prefill import read_prompts
from training_core.rollouts.sampling import (
    Choice,
    UniformStreams,
    likeliest_tokens,
    sample_tokens,
)
from training_core.rollouts.tree import plan_rows

FEWEST_ROWS = 24
"""Rows below which a batch is not split over lanes."""

Progress = Callable[[int, int], None]
"""Told (completions finished, tokens sampled) after each token; may raise to abandon the work."""
OnTokens = Callable[[Sequence[tuple[int, int]], Sequence[int]], None]
"""Told (request, completion) of each unfinished completion and its newest token. Lanes call it from
their own threads."""


@dataclass(frozen=True)
class Request:
    """A prompt and the seeds of its completions, one for each."""

    prompt_ids: tuple[int, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class GenerationSettings:
    """How completions are drawn."""

    max_new_tokens: int
    """Longest completion; shorter where the model's context ends first."""
    temperature: float
    """0 takes the likeliest token."""
    max_rows: int
    """Completions that are decoded at once."""


@dataclass(frozen=True)
class Completion:
    """One sampled completion, its end token included."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each token under the sampler, in nats, at the sampling temperature."""
    finish_reason: FinishReason
    entropy_nats: float
    """Sum over its tokens of the entropy of the distribution that each was drawn from."""


def generate(
    policy: Policy,
    requests: Sequence[Request],
    settings: GenerationSettings,
    progress: Progress,
    on_tokens: OnTokens | None = None,
) -> list[list[Completion]]:
    """Completions of each request, in order. Raises BadData when a prompt leaves no room.

    Somebody who watches the tokens as they come changes none of them.
    """
    for request in requests:
        if len(request.prompt_ids) >= policy.facts.context_tokens:
            raise BadData(
                f"A prompt has {len(request.prompt_ids):,} tokens; the model's context holds"
                f" {policy.facts.context_tokens:,}, and none would be left for the completion.",
                "Leave such prompts out of the domain, or choose a model with a longer context.",
            )
    batches = plan_batches(
        [len(request.seeds) for request in requests], settings.max_rows, policy.lanes.count
    )
    report = _SharedReport(progress)

    def decode(places: list[tuple[int, int]]) -> list[Completion]:
        with torch.inference_mode():
            batch = _Batch(policy, requests, places, settings, on_tokens)
            while batch.step():
                report.tell(id(places), batch.finished, batch.sampled)
            report.tell(id(places), batch.finished, batch.sampled)
            return batch.completions()

    found: list[list[Completion]] = [[] for _ in requests]
    decoded = policy.lanes.run([partial(decode, places) for places in batches])
    for places, completions in zip(batches, decoded, strict=True):
        for (place, _), completion in zip(places, completions, strict=True):
            found[place].append(completion)
    return found


def plan_batches(
    sizes: Sequence[int], max_rows: int, lanes: int = 1
) -> list[list[tuple[int, int]]]:
    """Batches of (request, completion); a group is split only when it exceeds a batch by itself.

    Rows are spread over the lanes, but not below `FEWEST_ROWS`: each batch reads all weights for
    each token, so small batches cost a processor more than a second lane gains.
    """
    total = sum(sizes)
    wanted = max(-(-total // max_rows), min(lanes, total // FEWEST_ROWS), 1)
    rows = min(max_rows, -(-total // wanted))
    batches: list[list[tuple[int, int]]] = [[]]
    for request, size in enumerate(sizes):
        if batches[-1] and len(batches[-1]) + size > rows:
            batches.append([])
        for completion in range(size):
            if len(batches[-1]) >= max_rows:
                batches.append([])
            batches[-1].append((request, completion))
    return [batch for batch in batches if batch]


class _SharedReport:
    """Progress of all batches together, told by one lane at a time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._counts: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def tell(self, batch: int, finished: int, sampled: int) -> None:
        """One batch has come this far."""
        with self._lock:
            self._counts[batch] = (finished, sampled)
            done, tokens = (sum(column) for column in zip(*self._counts.values(), strict=True))
            self._progress(done, tokens)


@dataclass
class _Batch:
    """Completions that are decoded together. B row of the batch, A completion that is unfinished.

    What is counted by completions lies on the processor, what is counted by rows with the model.
    """

    policy: Policy
    requests: Sequence[Request]
    places: list[tuple[int, int]]
    settings: GenerationSettings
    on_tokens: OnTokens | None = None
    finished: int = 0
    sampled: int = 0
    _position: int = 0
    _tokens: list[torch.Tensor] = field(default_factory=list)
    _logprobs: list[torch.Tensor] = field(default_factory=list)
    _entropies: list[torch.Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the prompts; each is the first row of all its completions."""
        device = self.policy.device
        used = list(dict.fromkeys(request for request, _ in self.places))
        prompts = [self.requests[request].prompt_ids for request in used]
        prefill = read_prompts(self.policy, prompts, room_rows=len(self.places))
        self._cache, self._logits_BV = prefill.cache, prefill.logits_PV
        self._prompt_width = prefill.mask_PT.shape[1]
        room = self.settings.max_new_tokens
        # One column for each token that may come: the mask is a view that grows.
        ahead_PT = torch.ones(len(prompts), room, dtype=prefill.mask_PT.dtype)
        self._mask_BT = torch.cat([prefill.mask_PT, ahead_PT], dim=1).to(device)
        lengths_P = torch.tensor([len(prompt) for prompt in prompts])
        self._length_B = lengths_P.to(device)
        self._places_A = torch.arange(len(self.places))
        self._rows_A = torch.tensor([used.index(request) for request, _ in self.places])
        limits_P = (self.policy.facts.context_tokens - lengths_P).clamp(max=room)
        self._limit_A = limits_P[self._rows_A]
        self._eos_ids = torch.tensor(self.policy.facts.eos_ids)
        self._end = torch.zeros(len(self.places), dtype=torch.long)
        self._streams = UniformStreams(
            [self.requests[request].seeds[completion] for request, completion in self.places]
        )

    def step(self) -> bool:
        """Sample one token of each unfinished completion; False when there is none left."""
        choice = self._choose()
        self._record(choice)
        self.sampled += len(self._places_A)
        self._position += 1
        tokens_A = choice.tokens_A.cpu()
        if self.on_tokens is not None:
            places = [self.places[place] for place in self._places_A.tolist()]
            self.on_tokens(places, tokens_A.tolist())
        ended_A = torch.isin(tokens_A, self._eos_ids) | (self._limit_A <= self._position)
        self._end[self._places_A[ended_A]] = self._position
        goes_on_A = ~ended_A
        self._places_A, self._limit_A = self._places_A[goes_on_A], self._limit_A[goes_on_A]
        self.finished = len(self.places) - len(self._places_A)
        if len(self._places_A) == 0:
            return False
        self._read(self._rows_A[goes_on_A], tokens_A[goes_on_A])
        return True

    def _read(self, rows_A: torch.Tensor, tokens_A: torch.Tensor) -> None:
        """Give the chosen tokens rows, equal beginnings one for all, and compute what follows."""
        plan = plan_rows(rows_A, tokens_A, rows=len(self._mask_BT))
        self._rows_A = plan.rows_A
        if plan.moves:
            parents_B = plan.parents_B.to(self.policy.device)
            self._cache.batch_select_indices(parents_B)
            self._mask_BT, self._length_B = self._mask_BT[parents_B], self._length_B[parents_B]
        self._logits_BV = self.policy.sampler_logits_BV(
            input_ids=plan.tokens_B[:, None].to(self.policy.device),
            attention_mask=self._mask_BT[:, : self._prompt_width + self._position],
            position_ids=(self._length_B + (self._position - 1))[:, None],
            cache=self._cache,
            use_cache=True,
        )

    def completions(self) -> list[Completion]:
        """What the rows have become, in the order of `places`."""
        tokens_BT = torch.stack(self._tokens, dim=1).tolist()
        logprobs_BT = torch.stack(self._logprobs, dim=1).tolist()
        entropies_BT = torch.stack(self._entropies, dim=1).double()
        eos_ids = set(self.policy.facts.eos_ids)
        return [
            Completion(
                tuple(tokens[:end]),
                tuple(logprobs[:end]),
                "eos" if tokens[end - 1] in eos_ids else "length",
                float(entropies_T[:end].sum()),
            )
            for tokens, logprobs, entropies_T, end in zip(
                tokens_BT, logprobs_BT, entropies_BT, self._end.tolist(), strict=True
            )
        ]

    def _choose(self) -> Choice:
        """The next token of each unfinished completion."""
        rows_A = self._rows_A.to(self._logits_BV.device)
        if self.settings.temperature == 0:
            return likeliest_tokens(self._logits_BV, rows_A)
        uniform_A = self._streams.column_B(self._position, self._places_A)
        return sample_tokens(
            self._logits_BV,
            rows_A,
            uniform_A.to(rows_A.device),
            temperature=self.settings.temperature,
        )

    def _record(self, choice: Choice) -> None:
        """Append a column for all places; those that have ended keep zeros beyond their end."""
        for columns, values_A in (
            (self._tokens, choice.tokens_A),
            (self._logprobs, choice.logprobs_A),
            (self._entropies, choice.entropy_A),
        ):
            column = torch.zeros(len(self.places), dtype=values_A.dtype)
            column[self._places_A] = values_A.cpu()
            columns.append(column)


def rows_that_fit(config: Any, *, tokens: int, memory_bytes: int, dtype_bytes: int) -> int:
    """How many rows of that many tokens have their keys and values in that memory, at least 1."""
    text = config.get_text_config(decoder=True)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    row_bytes = 2 * text.num_hidden_layers * heads * width * dtype_bytes * tokens
    return max(1, memory_bytes // int(row_bytes))
