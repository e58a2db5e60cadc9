"""How far a step under glass is, for the page that shows it: phases, and completions as they grow.

Made by `workers.glass_main`, told by `training_core.glass` and `training_core.tryout`. At most four
files a second are written; a phase that begins is always told. A disk that is full costs the view,
not the step.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from training_core.contract.domains import Message
from training_core.contract.glass import GlassDir, GlassPhase, GlassProgress

SHORTEST_INTERVAL_S = 0.25
BYTES_OF_UNIT = 1_000_000

Decode = Callable[[Sequence[int]], str]
"""Token ids as text, special tokens left in."""


class GlassReporter:
    """The newest word about a step, on disk."""

    def __init__(self, directory: GlassDir) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._phase: GlassPhase = "load"
        self._done = self._total = 0
        self._messages: tuple[Message, ...] = ()
        self._tokens: list[list[int]] = []
        self._each = 1
        self._decode: Decode | None = None
        self._told = self._began = time.monotonic()
        self.seconds: dict[str, float] = {}
        """Phase to the time that it took."""

    def begin(self, phase: GlassPhase, total: int = 0) -> None:
        """The next phase begins, with so many things to do; 0 when unknown."""
        with self._lock:
            self._lap()
            self._phase, self._done, self._total = phase, 0, total
            self._tell()

    def update(self, done: int, total: int | None = None) -> None:
        """So many things of the phase are done."""
        with self._lock:
            self._done = done
            self._total = self._total if total is None else total
            self._tell_in_time()

    def fetched(self, done: int, total: int) -> None:
        """So many bytes of a model are here; the load phase counts megabytes meanwhile."""
        self.update(done // BYTES_OF_UNIT, -(-total // BYTES_OF_UNIT))

    def show_prompt(self, messages: Sequence[Message], completions: int, decode: Decode) -> None:
        """The prompt is known, and how many completions will grow."""
        with self._lock:
            self._messages = tuple(messages)
        self.expect(1, completions, decode)

    def expect(self, prompts: int, completions: int, decode: Decode) -> None:
        """So many completions of each of so many prompts will grow."""
        with self._lock:
            self._decode, self._each = decode, completions
            self._tokens = [[] for _ in range(prompts * completions)]

    def grow(self, places: Sequence[tuple[int, int]], tokens: Sequence[int]) -> None:
        """Each unfinished completion has got a token."""
        with self._lock:
            for (prompt, completion), token in zip(places, tokens, strict=True):
                self._tokens[prompt * self._each + completion].append(token)
            self._tell_in_time()

    def finish(self) -> None:
        """The last phase ends."""
        with self._lock:
            self._lap()

    def _lap(self) -> None:
        """Note the time of the phase that ends."""
        now = time.monotonic()
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._began
        self._began = now

    def _tell_in_time(self) -> None:
        if time.monotonic() - self._told >= SHORTEST_INTERVAL_S:
            self._tell()

    def _tell(self) -> None:
        """Write what is known."""
        self._told = time.monotonic()
        decode = self._decode
        texts = tuple(decode(tokens) for tokens in self._tokens) if decode else ()
        progress = GlassProgress(
            phase=self._phase,
            done=self._done,
            total=self._total,
            messages=self._messages,
            texts=texts,
        )
        with suppress(OSError):
            self._directory.write_progress(progress)
