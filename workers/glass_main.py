"""The process of a step under glass: `python -m workers.glass_main GLASS_DIR [--run-dir RUN_DIR]`.

A tryout of a base model is another kind of request to the same process.

Started by `workers.glass_keeper`, which holds the other end of its stdin, and killed when it is not
wanted any more: everything that it changes is in its own memory. Ends with code 0 when the result
is written and 1 when it failed; either way `end.json` says why.
"""

from __future__ import annotations

import argparse
import errno
import sys
import threading
import traceback
from pathlib import Path

from pydantic import ValidationError
from transformers.utils.logging import disable_progress_bar

from training_core.algorithms.learner import is_out_of_memory
from training_core.checkpoints import load_optimiser, read_checkpoint
from training_core.contract.glass import DomainPrompt, GlassDir, GlassEnd, GlassSpec
from training_core.contract.rundir import OPTIMISER, RunDir
from training_core.contract.tryout import TryoutSpec
from training_core.domains.item import PromptItem
from training_core.domains.sources import open_domain
from training_core.failures import BadModel, TrainingFailure
from training_core.glass import Bench, take_glass_step
from training_core.launch import build_accelerator, open_policy
from training_core.models.processor import use_large_pages, use_repeatable_products
from training_core.monitors.glass_progress import GlassReporter
from training_core.rollouts.collect import PromptRequest
from training_core.rollouts.seeds import stream_seed
from training_core.tryout import try_base
from workers.lifeline import exit_with_supervisor
from workers.trainer_main import models_dir


def main(argv: list[str] | None = None) -> int:
    """Take one step."""
    parser = argparse.ArgumentParser(prog="glass_main", description=__doc__)
    parser.add_argument("glass_dir", type=Path)
    parser.add_argument("--run-dir", type=Path, default=None)
    arguments = parser.parse_args(argv)
    use_repeatable_products()
    use_large_pages()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    threading.Thread(target=exit_with_supervisor, daemon=True).start()
    directory = GlassDir(arguments.glass_dir)
    end = run_step(directory, RunDir(arguments.run_dir or arguments.glass_dir))
    directory.write_end(end)
    print(f"{end.outcome}: {end.message}", flush=True)
    return 0 if end.outcome == "done" else 1


def run_step(directory: GlassDir, run_dir: RunDir) -> GlassEnd:
    """Open the model, do what is asked, write the result, say how it ended; nothing is raised."""
    try:
        spec = directory.read_spec()
        reporter = GlassReporter(directory)
        reporter.begin("load")
        if isinstance(spec, TryoutSpec):
            policy, plan = open_policy(
                spec.run.model.ref, spec.resources, models_dir(), None, fetched=reporter.fetched
            )
            directory.write_result(try_base(policy, plan, spec, reporter))
            return GlassEnd(outcome="done", cause="done", message="The base model has tried.")
        bench = open_bench(spec, run_dir, reporter)
        directory.write_result(take_glass_step(bench, spec, prompt_request(spec, run_dir)))
    except TrainingFailure as failure:
        print(failure.message, failure.advice, flush=True)
        return GlassEnd(
            outcome="failed", cause=failure.cause, message=failure.message, advice=failure.advice
        )
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return explain(error)
    return GlassEnd(outcome="done", cause="done", message="The step was taken.")


def open_bench(spec: GlassSpec, run_dir: RunDir, reporter: GlassReporter) -> Bench:
    """The policy on its device, and AdamW as the spec wants it. Raises a TrainingFailure."""
    checkpoint = run_dir.root / spec.checkpoint if spec.checkpoint else None
    if checkpoint is not None:
        _check(checkpoint)
    policy, plan = open_policy(
        spec.model.ref, spec.resources, models_dir(), checkpoint, fetched=reporter.fetched
    )
    bench = Bench.prepare(policy, plan, build_accelerator(plan), spec, reporter)
    if spec.keeps_moments and checkpoint and (checkpoint / OPTIMISER).is_file():
        load_optimiser(checkpoint, policy, bench.optimiser)
    return bench


def prompt_request(spec: GlassSpec, run_dir: RunDir) -> PromptRequest:
    """The prompt with the seeds of its completions: those of a run's first step. Raises BadData."""
    seeds = tuple(
        stream_seed(spec.seed, "rollout", 1, 0, index) for index in range(spec.stage.group_size)
    )
    return PromptRequest("glass", find_item(spec, run_dir), seeds)


def find_item(spec: GlassSpec, run_dir: RunDir) -> PromptItem:
    """The prompt of a domain, or one's own. Raises BadData."""
    prompt = spec.prompt
    if isinstance(prompt, DomainPrompt):
        return open_domain(prompt.domain, run_dir, prompt.seed).prompt(prompt.index)
    return PromptItem("own", "", prompt.messages, prompt.messages[-1].content, prompt.answer)


def explain(error: Exception) -> GlassEnd:
    """An unforeseen error in words."""
    if is_out_of_memory(error):
        return GlassEnd(
            outcome="failed",
            cause="out_of_memory",
            message=f"Memory ran out: {error}",
            advice="Ask for fewer or shorter completions, or choose a smaller model.",
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return GlassEnd(
            outcome="failed",
            cause="disk_full",
            message=f"The disk is full: {error}",
            advice="Free disk space, then ask again.",
        )
    return GlassEnd(
        outcome="failed",
        cause="crash",
        message=f"{type(error).__name__}: {error}",
        advice="The last lines of what the process printed say where it happened.",
    )


def _check(checkpoint: Path) -> None:
    """Raise BadModel for a checkpoint that is gone or not whole."""
    try:
        read_checkpoint(checkpoint)
    except (OSError, ValueError, ValidationError) as error:
        raise BadModel(
            f"The checkpoint {checkpoint.name} cannot be read: {error}",
            "It may have been removed by the run's retention rule; choose another one.",
        ) from error


if __name__ == "__main__":
    sys.exit(main())
