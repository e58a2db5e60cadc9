"""Seeds by name: each random stream is a pure function of the run's seed and of what it is for.

Used wherever the core draws at random. Nothing is drawn from a shared, stateful generator, so a
resumed run needs no generator states and a rollout does not depend on its neighbours in a batch.
"""

from __future__ import annotations

import hashlib


def stream_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream that `names` describe, such as ("rollout", step, group, i)."""
    text = "\x1f".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
