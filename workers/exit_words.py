"""What to conclude when a trainer ended without saying why.

Called by `workers.supervisor` with the exit code and what it saw itself. The trainer's own
`attempt_finished`, where there is one, outranks this.
"""

from __future__ import annotations

import signal
from pathlib import Path

from training_core.contract.events import Outcome
from webapp.lifecycle import Verdict
from workers.escalation import Wish

_OUTCOMES: dict[Wish | None, Outcome] = {
    "stop": "stopped",
    "pause": "paused",
    "shutdown": "shutdown",
}
MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")
VMSTAT = Path("/proc/vmstat")


def judge_exit(
    code: int, last_words: str, *, killed_for: Wish | None, was_out_of_memory: bool
) -> Verdict:
    """A verdict from outside. `killed_for` is the wish for which we sent the signal it died of."""
    if killed_for in _OUTCOMES:
        return _ended_by_us(_OUTCOMES[killed_for], code)
    if code == -signal.SIGKILL and was_out_of_memory:
        return Verdict(
            "failed",
            "out_of_memory",
            "The trainer was killed, and the system's out-of-memory killer was at work then.",
            "Lower resources.micro_batch_tokens, group_size or max_new_tokens, or take a machine "
            "with more memory.",
        )
    if code < 0:
        name = _signal_name(-code)
        return Verdict(
            "failed",
            "killed",
            _with_words(f"The trainer was ended by {name}.", last_words),
            "If it happens again, look at the console for what it did last.",
            retryable=True,
        )
    if code == 0:
        return Verdict(
            "failed",
            "vanished",
            _with_words("The trainer ended without saying how.", last_words),
            "Look at the console.",
            retryable=True,
        )
    return Verdict(
        "failed",
        "exception",
        _with_words(f"The trainer ended with code {code}.", last_words),
        "The last lines of the console say where it happened.",
        retryable=True,
    )


def cannot_start(error: OSError) -> Verdict:
    """The process could not be started, or its directory not be written."""
    return Verdict(
        "failed",
        "cannot_start",
        f"The trainer could not be started: {error}.",
        "Look at the worker's log; the disk may be full or the Python environment broken.",
        retryable=True,
    )


def count_oom_kills() -> int:
    """Kills by the out-of-memory killer so far: in this container where that is known."""
    for file in (MEMORY_EVENTS, VMSTAT):
        try:
            lines = file.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _ended_by_us(outcome: Outcome, code: int) -> Verdict:
    """It was asked to end: it could not save yet (SIGTERM), or took too long (SIGKILL)."""
    lost = "what it did after its last checkpoint is lost."
    if code == -signal.SIGTERM:
        words = f"The trainer was asked to end before it was ready to save; {lost}"
        return Verdict(outcome, "ended_early", words)
    words = f"The trainer did not end in time after it was asked to and was killed; {lost}"
    return Verdict(outcome, "killed_after_grace", words)


def tell_end(code: int) -> str:
    """`by SIGKILL` or `with code 1`: how a process ended, for a sentence about it."""
    return f"by {_signal_name(-code)}" if code < 0 else f"with code {code}"


def _signal_name(number: int) -> str:
    """`SIGSEGV`, or the number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _with_words(sentence: str, last_words: str) -> str:
    """The sentence, and what the trainer printed last."""
    return f"{sentence}\nIts last lines:\n{last_words}" if last_words else sentence
