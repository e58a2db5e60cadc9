"""Whether a run's checkpoints will fit on the disk, judged before it starts.

Called by `services` at launch and by `webapp.control.claims` at each claim; the trainer checks
again before each checkpoint. An estimate: a checkpoint holds fp32 master weights and AdamW's two
moments, 12 bytes a parameter.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from training_core.contract.rundir import BESIDE_MODEL
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL, RunSpec
from training_core.contract.stages import RlStage
from webapp.runs.model_paths import find_model_directory

CHECKPOINT_BYTES_PER_PARAMETER = 12
REFERENCE_BYTES_PER_PARAMETER = 4
BUILTIN_PARAMETERS = {BUILTIN_MODEL: 134_515_008, TINY_MODEL: 821_120}
BYTES_PER_STORED_PARAMETER = 2
"""Of a model on disk; fp32 files make the estimate twice as cautious."""
UNKNOWN_MODEL_PARAMETERS = 135_000_000
SPARE_BYTES = 200_000_000
"""For rollouts, events and the database, which live on the same disk."""


def problem_with_space(spec: RunSpec, directory: Path | None = None) -> str:
    """A sentence when the run will not fit, else an empty string."""
    needed = needed_bytes(spec) - _used_by(directory)
    free = shutil.disk_usage(_existing(Path(settings.RUNS_DIR))).free
    if needed <= free:
        return ""
    return _(
        "The run needs about %(needed)s of disk for %(count)s checkpoints, but only %(free)s are "
        "free where runs are kept. Delete old runs, lower checkpoint.keep_last, or point "
        "TEMPER_DATA_DIR to a larger disk."
    ) % {"needed": _gb(needed), "count": checkpoints_kept(spec), "free": _gb(free)}


def needed_bytes(spec: RunSpec) -> int:
    """Largest size that the run directory is expected to reach."""
    parameters = parameters_of(spec.model.ref)
    checkpoints = CHECKPOINT_BYTES_PER_PARAMETER * checkpoints_kept(spec)
    references = REFERENCE_BYTES_PER_PARAMETER * references_kept(spec)
    return parameters * (checkpoints + references) + SPARE_BYTES


def references_kept(spec: RunSpec) -> int:
    """Stages whose divergence is measured against other weights than the base model's.

    One file on disk serves all checkpoints of a stage; those of two stages may lie side by side.
    """
    later = [stage for stage in spec.stages[1:] if isinstance(stage, RlStage)]
    return min(2, sum(stage.algorithm.divergence.coefficient > 0 for stage in later))


def checkpoints_kept(spec: RunSpec) -> int:
    """The newest, the best, and the one that is being written."""
    return spec.checkpoint.keep_last + int(spec.checkpoint.keep_best) + 1


def parameters_of(ref: str) -> int:
    """Parameters of a model: known, told by the size of its files, or a guess."""
    if ref in BUILTIN_PARAMETERS:
        return BUILTIN_PARAMETERS[ref]
    directory = find_model_directory(ref)
    try:
        found = directory.glob("*.safetensors") if directory else ()
        size = sum(file.stat().st_size for file in found if file.name not in BESIDE_MODEL)
    except OSError:
        size = 0
    return size // BYTES_PER_STORED_PARAMETER or UNKNOWN_MODEL_PARAMETERS


def _used_by(directory: Path | None) -> int:
    """Bytes of checkpoints that the run has already: they are replaced, not added to."""
    if directory is None:
        return 0
    found = [path.stat() for path in (directory / "checkpoints").rglob("*") if path.is_file()]
    return sum({facts.st_ino: facts.st_size for facts in found}.values())


def _existing(path: Path) -> Path:
    """The nearest directory that is there already."""
    return next(each for each in (path, *path.parents) if each.exists())


def _gb(size: int) -> str:
    """Decimal gigabytes."""
    return f"{size / 1e9:.1f} GB"
