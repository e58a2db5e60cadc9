"""Lanes: worker threads that each compute with few processor threads of their own.

Used by `rollouts.engine` and `algorithms.learner`. On a processor a step is thousands of short
kernels; when each is split over threads, all of them wait at its end for the slowest, and a single
busy neighbour on a shared machine makes decoding ten times slower (measured: 430 tokens/s fall to
33). Lanes split the batch instead of the kernel: nobody waits before the end. PyTorch lets go of
the interpreter's lock inside its kernels, so lanes do run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

Result = TypeVar("Result")


class Lanes:
    """A fixed number of lanes; with one, work is done by the caller and its own threads."""

    def __init__(self, count: int = 1, threads_each: int = 1) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        if count > 1:
            self._pool = ThreadPoolExecutor(
                count, "lane", initializer=torch.set_num_threads, initargs=(threads_each,)
            )

    def run(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Results of all jobs, in order; raises the first job's exception once all have ended."""
        if self._pool is None:
            return [job() for job in jobs]
        futures = [self._pool.submit(job) for job in jobs]
        wait(futures)
        return [future.result() for future in futures]


def share_out(sizes: Sequence[int], lanes: int) -> list[list[int]]:
    """Indices of the sizes for each lane, so that sums are alike: largest first, to the emptiest.

    Lanes without work are left out. The same sizes give the same shares.
    """
    shares: list[list[int]] = [[] for _ in range(lanes)]
    loads = [0] * lanes
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        lane = loads.index(min(loads))
        shares[lane].append(index)
        loads[lane] += sizes[index]
    return [sorted(share) for share in shares if share]
