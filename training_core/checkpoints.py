"""Checkpoints: everything that decides the next step, on disk whole or not at all.

Called by `training_core.boundary` (save) and `workers.trainer_main` (resume). A checkpoint is a
directory that `AutoModelForCausalLM.from_pretrained` loads as it is, plus `optimiser.safetensors`,
`state.json` and `manifest.json` with the size and hash of every file; inside a stage that is
measured against a reference other than the base model also `reference.safetensors`, one file on
disk under a name in each checkpoint of the stage. It is written aside, forced to disk and renamed,
and only by the attempt that owns the run directory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from training_core.contract.rundir import (
    MANIFEST,
    OPTIMISER,
    REFERENCE,
    STATE,
    RunDir,
    fsync_directory,
)
from training_core.contract.strict import WireModel
from training_core.failures import OwnerLost
from training_core.models.policy import Policy
from training_core.state import RunState

SPARE_BYTES = 64 << 20
"""Room that stays free beside a checkpoint, for events and rollouts."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileEntry(WireModel):
    """What a whole file looks like."""

    size: int
    """Bytes."""
    sha256: str
    """Hash of its content, in hex."""


class Manifest(WireModel):
    """What a checkpoint is and what belongs to it; without it there is no checkpoint."""

    format: int = 1
    """Version of the layout."""
    step: int
    """Optimiser steps done."""
    stage: str
    """Name of the stage it was saved in."""
    attempt: int
    """Attempt that wrote it."""
    reference_step: int | None = None
    """Steps done when the policy was what `reference.safetensors` holds; null without it."""
    t: float
    """When, in seconds since 1970 (UTC)."""
    files: dict[str, FileEntry]
    """Every other file."""


class NoRoom(Exception):
    """The disk has no room for the checkpoint; nothing was left behind."""


@dataclass(frozen=True)
class Retention:
    """Which checkpoints stay once a newer one is on disk."""

    keep_last: int
    best_step: int | None
    """Step whose checkpoint stays as the best, or None."""

    def kept(self, steps: list[int], newest: int) -> set[int]:
        """Steps that stay. What lies beyond the newest is damaged or of another attempt."""
        return {*[step for step in steps if step <= newest][-self.keep_last :], self.best_step or 0}


@dataclass(frozen=True)
class Saved:
    """What a save did."""

    path: Path
    size_bytes: int
    removed: tuple[Path, ...]


@dataclass(frozen=True)
class Resumable:
    """A checkpoint that was found whole."""

    path: Path
    manifest: Manifest
    state: RunState


class CheckpointStore:
    """The checkpoints of one run, as one attempt sees them."""

    def __init__(self, run_dir: RunDir, *, attempt: int, token: int) -> None:
        self._run_dir = run_dir
        self._attempt = attempt
        self._token = token
        self._damaged: set[int] = set()
        for left in run_dir.checkpoints.glob(".*"):
            shutil.rmtree(left, ignore_errors=True)

    def find_newest(self, damaged: Callable[[Path, str], None]) -> Resumable | None:
        """The newest whole checkpoint; `damaged` hears of each one that is not."""
        for step in reversed(saved_steps(self._run_dir)):
            path = self._run_dir.checkpoint(step)
            try:
                return read_checkpoint(path)
            except (OSError, ValueError, ValidationError) as error:
                self._damaged.add(step)
                damaged(path, str(error))
        return None

    def has(self, step: int) -> bool:
        """Whether this step has been saved, and was not found damaged."""
        manifest = self._run_dir.checkpoint(step) / MANIFEST
        return step not in self._damaged and manifest.is_file()

    def save(
        self,
        policy: Policy,
        optimiser: torch.optim.Optimizer | None,
        state: RunState,
        *,
        reference: Policy | None = None,
        stage: str,
        retention: Retention,
        progress: Callable[[int], None],
    ) -> Saved:
        """Write the checkpoint of `state.step`, then remove what the retention rule lets go.

        `progress(0)` is called before the first file, `progress(1)` when all are on disk and only
        the rename is left. The reference is the policy after `state.reference_step` steps; base
        weights are not written. Raises NoRoom, OwnerLost.
        """
        target = self._run_dir.checkpoint(state.step)
        aside = target.with_name(f".tmp-{target.name}-{os.getpid()}")
        kept = self._find_reference(state.reference_step) if reference else None
        self._check_room(policy, optimiser, new_reference=reference is not None and not kept)
        progress(0)
        try:
            aside.mkdir(parents=True)
            _write_files(aside, policy, optimiser, state)
            if reference is not None:
                _write_reference(aside / REFERENCE, reference, kept)
            manifest = self._write_manifest(
                aside, state.step, stage, state.reference_step if reference else None
            )
            progress(1)
            self._check_owner()
            self._put_in_place(aside, target)
        except BaseException as error:
            shutil.rmtree(aside, ignore_errors=True)
            if _is_full(error):
                raise NoRoom(f"The disk is full: {error}") from error
            raise
        self._damaged.discard(state.step)
        size = sum(entry.size for entry in manifest.files.values())
        return Saved(target, size, self._prune(retention, state.step))

    def _find_reference(self, reference_step: int | None) -> Path | None:
        """The file of that reference in the newest whole checkpoint that has it."""
        for step in reversed(saved_steps(self._run_dir)):
            path = self._run_dir.checkpoint(step)
            try:
                manifest = read_manifest(path)
            except (OSError, ValueError):
                continue
            if step not in self._damaged and manifest.reference_step == reference_step:
                return path / REFERENCE
        return None

    def _check_room(
        self, policy: Policy, optimiser: torch.optim.Optimizer | None, *, new_reference: bool
    ) -> None:
        """Refuse before writing what cannot fit."""
        weights = sum(weight.numel() * weight.element_size() for weight in policy.parameters())
        copies = (3 if optimiser is not None else 1) + new_reference
        needed = weights * copies + SPARE_BYTES
        free = shutil.disk_usage(self._run_dir.root).free
        if free < needed:
            raise NoRoom(
                f"A checkpoint needs {needed / 1e9:.2f} GB and the disk has {free / 1e9:.2f} GB."
            )

    def _write_manifest(
        self, aside: Path, step: int, stage: str, reference_step: int | None
    ) -> Manifest:
        """Force every file to disk and list it."""
        files = {path.name: _seal(path) for path in sorted(aside.iterdir())}
        manifest = Manifest(
            step=step,
            stage=stage,
            attempt=self._attempt,
            reference_step=reference_step,
            t=time.time(),
            files=files,
        )
        path = aside / MANIFEST
        path.write_text(manifest.model_dump_json(indent=1))
        _seal(path)
        fsync_directory(aside)
        return manifest

    def _check_owner(self) -> None:
        owner = self._run_dir.read_owner()
        if owner != (self._attempt, self._token):
            raise OwnerLost(
                f"Attempt {owner[0]} owns the run now; attempt {self._attempt} writes no more.",
                "Nothing to do: the newer attempt goes on.",
            )

    def _put_in_place(self, aside: Path, target: Path) -> None:
        """Rename; a damaged checkpoint of the same step makes way."""
        if target.exists():
            old = target.with_name(f".old-{target.name}-{os.getpid()}")
            target.rename(old)
            aside.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            aside.rename(target)
        fsync_directory(target.parent)

    def _prune(self, retention: Retention, newest: int) -> tuple[Path, ...]:
        steps = saved_steps(self._run_dir)
        removed = [
            self._run_dir.checkpoint(step)
            for step in steps
            if step not in retention.kept(steps, newest)
        ]
        for path in removed:
            shutil.rmtree(path, ignore_errors=True)
        return tuple(removed)


def saved_steps(run_dir: RunDir) -> list[int]:
    """Steps that have a checkpoint directory, in order."""
    return sorted(
        int(path.name.removeprefix("step-")) for path in run_dir.checkpoints.glob("step-*")
    )


def read_checkpoint(path: Path) -> Resumable:
    """Check every file and read the state. Raises OSError or ValueError when it is not whole."""
    manifest = read_manifest(path)
    verify_files(path, manifest, manifest.files)
    state = RunState.model_validate_json((path / STATE).read_bytes())
    return Resumable(path, manifest, state)


def read_manifest(path: Path) -> Manifest:
    """What belongs to a checkpoint. Raises OSError or ValueError."""
    return Manifest.model_validate_json((path / MANIFEST).read_bytes())


def verify_files(
    path: Path,
    manifest: Manifest,
    names: Iterable[str],
    seen: Callable[[int], None] = lambda _: None,
) -> None:
    """Check files of a checkpoint; `seen` hears of the bytes of each that is good.

    Raises OSError, or ValueError naming the file that is not what was written.
    """
    for name in names:
        entry = manifest.files[name]
        size = (path / name).stat().st_size
        if size != entry.size:
            raise ValueError(f"{name} has {size:,} bytes instead of {entry.size:,}")
        if _hash(path / name) != entry.sha256:
            raise ValueError(f"{name} does not have the content that was written")
        seen(size)


def load_optimiser(path: Path, policy: Policy, optimiser: torch.optim.Optimizer) -> None:
    """Restore AdamW's moments from a checkpoint directory; bit for bit."""
    tensors = load_file(path / OPTIMISER)
    steps = tensors.pop("step")
    names = [name for name, weight in policy.model.named_parameters() if weight.requires_grad]
    if not tensors:
        return
    for name, weight in zip(names, policy.parameters(), strict=True):
        optimiser.state[weight] = {
            "step": steps.clone().to(weight.device),
            "exp_avg": tensors[f"exp_avg/{name}"].to(weight.device),
            "exp_avg_sq": tensors[f"exp_avg_sq/{name}"].to(weight.device),
        }


def load_reference(path: Path, reference: Policy) -> None:
    """Fill a policy with the reference's weights from a checkpoint directory; bit for bit."""
    tensors = load_file(path / REFERENCE)
    for name, weight in reference.model.named_parameters():
        weight.data.copy_(tensors[name])


def _write_reference(path: Path, reference: Policy, kept: Path | None) -> None:
    """Write the reference's weights, or give the file that has them another name."""
    if kept is not None:
        try:
            os.link(kept, path)
            return
        except OSError as error:
            if error.errno in _FULL:
                raise
            shutil.copyfile(kept, path)
            return
    tensors = {name: weight.detach() for name, weight in reference.model.named_parameters()}
    save_file(tensors, path)


def _write_files(
    aside: Path, policy: Policy, optimiser: torch.optim.Optimizer | None, state: RunState
) -> None:
    policy.model.save_pretrained(aside)
    policy.tokenizer.save_pretrained(aside)
    if optimiser is not None:
        save_file(_optimiser_tensors(policy, optimiser), aside / OPTIMISER)
    (aside / STATE).write_text(state.model_dump_json(indent=1))


def _optimiser_tensors(policy: Policy, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """AdamW's moments by name; one step count serves all, since all weights move together."""
    tensors: dict[str, torch.Tensor] = {"step": torch.zeros(())}
    names = [name for name, weight in policy.model.named_parameters() if weight.requires_grad]
    for name, weight in zip(names, policy.parameters(), strict=True):
        moments: dict[str, Any] = optimiser.state.get(weight, {})
        if moments:
            tensors["step"] = moments["step"].detach().cpu().clone()
            tensors[f"exp_avg/{name}"] = moments["exp_avg"]
            tensors[f"exp_avg_sq/{name}"] = moments["exp_avg_sq"]
    return tensors


def _seal(path: Path) -> FileEntry:
    """Force a file to disk and describe it."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    return FileEntry(size=path.stat().st_size, sha256=_hash(path))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_full(error: BaseException) -> bool:
    """Whether an error means a full disk; safetensors says so in words only."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return isinstance(error, SafetensorError) and any(
        f"os error {code}" in str(error) for code in _FULL
    )
