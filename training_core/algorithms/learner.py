"""The learner: gradients over micro-batches and the optimiser's step, the same for every stage.

Used by `algorithms.update` (rl) and `sft`. Splitting a window into micro-batches leaves its
gradient unchanged, so running out of memory is answered by smaller micro-batches, not by failure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

import torch
from accelerate import Accelerator

from training_core.failures import OutOfMemory
from training_core.losses.reduction import sum_gradients
from training_core.models.lanes import share_out
from training_core.models.logprobs import (
    PLAIN,
    HeadSettings,
    TokenLogprobs,
    completion_logprobs,
)
from training_core.models.packing import (
    JOINED_ROW_TOKENS,
    PackedBatch,
    Row,
    TokenSequence,
    build_batch,
    join_rows,
    plan_micro_batches,
    plan_rows,
)
from training_core.models.policy import Policy

Tally = TypeVar("Tally")
Found = TypeVar("Found")
TokenLoss = Callable[[PackedBatch, TokenLogprobs], tuple[torch.Tensor, Tally]]
"""Loss of each completion token (N,) of a micro-batch, its share of the window's divisor already
in it, and what is to be counted of it."""


class UpdateProgress(Protocol):
    """Told before each micro-batch how far the update is."""

    def __call__(self, done: int, total: int, *, may_abandon: bool) -> None:
        """Report; raise `failures.Interrupted` to abandon, where that is allowed."""


SMALLEST_MICRO_BATCH_TOKENS = 16


class _SharedReport:
    """Progress of all lanes together, told by one of them at a time."""

    def __init__(self, progress: UpdateProgress, total: int, may_abandon: bool) -> None:
        self._progress = progress
        self._total = total
        self._may_abandon = may_abandon
        self._done = 0
        self._lock = threading.Lock()

    def next(self) -> None:
        """A micro-batch begins."""
        with self._lock:
            self._progress(self._done, self._total, may_abandon=self._may_abandon)
            self._done += 1


@dataclass(frozen=True)
class _Window(Generic[Tally]):
    """What all micro-batches of an optimiser window share."""

    token_loss: TokenLoss[Tally]
    head: HeadSettings
    report: _SharedReport


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory has run out, on a GPU or a processor."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@dataclass
class Learner:
    """Turns losses into updates of the policy."""

    policy: Policy
    accelerator: Accelerator
    micro_batch_tokens: int
    """Tokens of a micro-batch, padding included; halved when memory runs out."""
    progress: UpdateProgress
    """Hears of each micro-batch."""
    halvings: list[int] = field(default_factory=list)
    """Budgets that memory has forced, newest last, until a notice has been given of them."""

    def accumulate(
        self,
        sequences: Sequence[TokenSequence],
        token_loss: TokenLoss[Tally],
        head: HeadSettings = PLAIN,
        *,
        may_abandon: bool = True,
    ) -> list[Tally]:
        """Add the gradient of sum(token_loss) over all sequences.

        Returns the tallies of the micro-batches. Raises OutOfMemory when a micro-batch cannot be
        made smaller, and Interrupted when `progress` does.
        """

        def work(
            replica: Policy, batches: Sequence[PackedBatch], report: _SharedReport
        ) -> list[Tally]:
            return self._backward(replica, batches, _Window(token_loss, head, report))

        found = self._in_lanes(sequences, work, may_abandon=may_abandon)
        return [tally for tallies in found for tally in tallies]

    def logprobs(
        self, sequences: Sequence[TokenSequence], head: HeadSettings = PLAIN
    ) -> list[torch.Tensor]:
        """Log-probabilities of each sequence's completion, in the batches of `accumulate`."""

        def work(
            replica: Policy, batches: Sequence[PackedBatch], report: _SharedReport
        ) -> dict[int, torch.Tensor]:
            return self._forward(replica, sequences, batches, head, report)

        found: dict[int, torch.Tensor] = {}
        for part in self._in_lanes(sequences, work, may_abandon=True):
            found |= part
        return [found[index] for index in range(len(sequences))]

    def apply(self, optimiser: torch.optim.Optimizer, *, max_grad_norm: float) -> float | None:
        """Clip, update, clear. The gradient's norm before clipping, or None when not finite.

        A gradient that is not finite changes nothing.
        """
        parameters = self.policy.parameters()
        sum_gradients(self.accelerator, parameters)
        norm = float(self.accelerator.clip_grad_norm_(parameters, max_grad_norm))
        finite = bool(torch.isfinite(torch.tensor(norm)))
        if finite:
            optimiser.step()
            self.policy.refresh_sampler()
        optimiser.zero_grad(set_to_none=True)
        return norm if finite else None

    def _in_lanes(
        self,
        sequences: Sequence[TokenSequence],
        work: Callable[[Policy, Sequence[PackedBatch], _SharedReport], Found],
        *,
        may_abandon: bool,
    ) -> list[Found]:
        """Share sequences out over the lanes; again with smaller micro-batches when memory ends."""
        while True:
            lanes = self._lanes(sequences)
            report = _SharedReport(self.progress, sum(map(len, lanes)), may_abandon)
            jobs = [
                partial(work, replica, batches, report)
                for replica, batches in zip(self.policy.replicas, lanes, strict=False)
            ]
            try:
                found = self.policy.lanes.run(jobs)
                self.policy.gather_gradients()
                return found
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failed = str(error)
            self._shrink(sequences, failed)

    @torch.no_grad()
    def _forward(
        self,
        replica: Policy,
        sequences: Sequence[TokenSequence],
        batches: Sequence[PackedBatch],
        head: HeadSettings,
        report: _SharedReport,
    ) -> dict[int, torch.Tensor]:
        """One lane's share of log-probabilities, by the sequences' indices."""
        found: dict[int, torch.Tensor] = {}
        for batch in batches:
            report.next()
            with self.accelerator.autocast():
                logprobs_N = completion_logprobs(replica, batch, head).logprobs_N
            lengths = [len(sequences[member].completion_ids) for member in batch.members]
            found.update(zip(batch.members, torch.split(logprobs_N, lengths), strict=True))
        return found

    def _backward(
        self, replica: Policy, batches: Sequence[PackedBatch], window: _Window[Tally]
    ) -> list[Tally]:
        """One lane's share of a window: its gradient goes to its replica."""
        tallies = []
        for batch in batches:
            window.report.next()
            with self.accelerator.autocast():
                found = completion_logprobs(replica, batch, window.head)
            loss_N, tally = window.token_loss(batch, found)
            self.accelerator.backward(loss_N.sum())
            tallies.append(tally)
        return tallies

    def _lanes(self, sequences: Sequence[TokenSequence]) -> list[list[PackedBatch]]:
        """Micro-batches of each lane. All lanes together stay within the budget."""
        count = self.policy.lanes.count
        rows = plan_rows(sequences, share=self._shares_rows(sequences))
        shares = share_out([row.tokens for row in rows], count)
        return [self._micro_batches(sequences, [rows[i] for i in share]) for share in shares]

    def _micro_batches(
        self, sequences: Sequence[TokenSequence], rows: Sequence[Row]
    ) -> list[PackedBatch]:
        """One lane's rows as batches on the device."""
        facts, budget = self.policy.facts, self.micro_batch_tokens // self.policy.lanes.count
        if self._shares_rows(sequences):
            rows = join_rows(sequences, rows, row_tokens=min(JOINED_ROW_TOKENS, budget))
        return [
            build_batch(sequences, chosen, pad_id=facts.pad_id).to(self.policy.device)
            for chosen in plan_micro_batches(rows, budget_tokens=budget)
        ]

    def _shares_rows(self, sequences: Sequence[TokenSequence]) -> bool:
        """Whether equal beginnings of these sequences are computed once."""
        longest = max((len(sequence.input_ids) for sequence in sequences), default=0)
        return self.policy.facts.shares_rows_of(longest)

    def _shrink(self, sequences: Sequence[TokenSequence], failed: str) -> None:
        """Halve the budget after memory ran out, or give up."""
        self.policy.clear_gradients()
        if self.policy.device.type == "cuda":
            torch.cuda.empty_cache()
        if self.micro_batch_tokens // 2 < SMALLEST_MICRO_BATCH_TOKENS:
            longest = max(len(s.prompt_ids) + len(s.completion_ids) for s in sequences)
            raise OutOfMemory(
                f"Memory ran out with a single sequence of up to {longest:,} tokens: {failed}",
                "Lower sampling.max_new_tokens, choose a smaller model, or use a machine with"
                " more memory.",
            )
        self.micro_batch_tokens //= 2
        self.halvings.append(self.micro_batch_tokens)
