"""The trainer process: `python -m workers.trainer_main RUN_DIR --attempt K --token T`.

Started by `workers.supervisor`, which holds the other end of its stdin and turns its events into
rows. Ends with code 0 when the attempt ended as asked (succeeded, stopped, paused, shutdown) and
1 when it failed; either way the last event says why. Prints to stdout, which is the console log.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from transformers.utils.logging import disable_progress_bar

from training_core.algorithms.learner import is_out_of_memory
from training_core.boundary import save
from training_core.contract.control import Command
from training_core.contract.events import AttemptFinished, ControlApplied, Outcome
from training_core.contract.rundir import RunDir
from training_core.failures import (
    Crashed,
    DiskFull,
    Interrupted,
    OutOfMemory,
    TrainingFailure,
)
from training_core.launch import open_session
from training_core.models.processor import use_large_pages, use_repeatable_products
from training_core.monitors.jsonl import EventLog
from training_core.monitors.narration import narrate
from training_core.monitors.phase import phase
from training_core.monitors.steering import Steering
from training_core.session import Session
from training_core.train import train
from workers.lifeline import exit_with_supervisor

_WORDS: dict[Outcome, str] = {
    "stopped": "stopped",
    "paused": "paused",
    "shutdown": "shut down with its worker",
}
_OUTCOMES: dict[Command, Outcome] = {"stop": "stopped", "pause": "paused", "shutdown": "shutdown"}


def main(argv: list[str] | None = None) -> int:
    """Run one attempt."""
    parser = argparse.ArgumentParser(prog="trainer_main", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--token", type=int, required=True)
    arguments = parser.parse_args(argv)
    use_repeatable_products()
    use_large_pages()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    run_dir = RunDir(arguments.run_dir)
    log = EventLog(run_dir.events_file(arguments.attempt), echo=narrate)
    steering = Steering(run_dir, arguments.attempt)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: steering.ask_shutdown())
    threading.Thread(target=exit_with_supervisor, daemon=True).start()
    ending = run_attempt(run_dir, log, steering, attempt=arguments.attempt, token=arguments.token)
    log.emit(AttemptFinished, **asdict(ending))
    print(f"{ending.outcome}: {ending.message}", flush=True)
    return 0 if log.close() and ending.outcome != "failed" else 1


@dataclass(frozen=True)
class Ending:
    """How an attempt ended: the fields of its last event."""

    step: int
    outcome: Outcome
    cause: str
    message: str
    advice: str = ""
    retryable: bool = False


def run_attempt(
    run_dir: RunDir, log: EventLog, steering: Steering, *, attempt: int, token: int
) -> Ending:
    """Open the run, train, and say how it ended; nothing is raised."""
    session: Session | None = None
    try:
        with phase(log, "load", step=0, stage="", total=1, unit="models"):
            session = open_session(
                run_dir.read_spec(),
                run_dir,
                log,
                steering,
                attempt=attempt,
                token=token,
                models_dir=models_dir(),
            )
        done = train(session)
        return Ending(session.state.step, "succeeded", done.cause, done.message)
    except Interrupted as wish:
        return end_on_request(session, log, steering, wish.command)
    except TrainingFailure as failure:
        print(failure.message, failure.advice, flush=True)
        return _failed(session, failure)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return _failed(session, _explain(error))


def end_on_request(
    session: Session | None, log: EventLog, steering: Steering, command: Command
) -> Ending:
    """Save the last whole step and acknowledge the command."""
    step = session.state.step if session else 0
    result = f"nothing to save at step {step}"
    if session is not None and step > 0:
        session.policy.clear_gradients()
        try:
            saved = save(session, session.stage_name)
        except TrainingFailure as failure:
            return _failed(session, failure)
        result = f"saved at step {step}" if saved else f"not saved at step {step}: the disk is full"
    for asked in steering.take_endings():
        log.emit(
            ControlApplied,
            step=step,
            control_id=asked.id,
            command=asked.command,
            result=result if asked.command == command else "overtaken by another command",
        )
    outcome = _OUTCOMES[command]
    cause = "shutdown" if command == "shutdown" else "user"
    return Ending(step, outcome, cause, f"The run was {_WORDS[outcome]}: {result}.")


def models_dir() -> Path:
    """Where the prepared built-in models are."""
    return Path(os.environ.get("TEMPER_MODELS_DIR", "var/models"))


def _failed(session: Session | None, failure: TrainingFailure) -> Ending:
    return Ending(
        session.state.step if session else 0,
        "failed",
        failure.cause,
        failure.message,
        failure.advice,
        failure.retryable,
    )


def _explain(error: Exception) -> TrainingFailure:
    """An unforeseen error as a failure that another attempt may survive."""
    if is_out_of_memory(error):
        return OutOfMemory(
            f"Memory ran out: {error}",
            "Lower prompts_per_step, group_size or max_new_tokens, or use a machine with more"
            " memory.",
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return DiskFull(f"The disk is full: {error}", "Free disk space, then resume the run.")
    return Crashed(
        f"{type(error).__name__}: {error}",
        "See the run's log for the traceback; the run can be resumed from its last checkpoint.",
    )


if __name__ == "__main__":
    sys.exit(main())
