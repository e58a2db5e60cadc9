"""An export's directory before its process starts: the checkpoint held fast, the order written.

Called by `services.claim_export` in a worker. The checkpoint's files get second names below the
export: a trainer that removes its old checkpoints meanwhile takes nothing away.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.utils.translation import override

from training_core.contract.exports import ExportDir, ExportDtype, ExportOrder
from training_core.contract.rundir import BESIDE_MODEL
from training_core.contract.yaml_text import spec_to_yaml
from webapp.registry.base_models import LINEAGE
from webapp.registry.card import render_card
from webapp.registry.lineage import as_json, read_lineage
from webapp.registry.models import ModelExport
from webapp.registry.refusals import ExportRefused
from webapp.runs.forks import link_or_copy
from webapp.runs.models import Checkpoint

CARD, SPEC = "README.md", "training_spec.yaml"


def prepare_directory(export: ModelExport) -> ExportDir:
    """Hold the checkpoint and write the order. Raises ExportRefused or OSError."""
    checkpoint = export.checkpoint
    if checkpoint is None:
        raise ExportRefused("The checkpoint's run was read anew and does not know it any more.")
    folder = export.folder
    shutil.rmtree(folder.root, ignore_errors=True)  # what a worker that was killed has left
    folder.source.mkdir(parents=True)
    try:
        hold_checkpoint(checkpoint.directory, folder.source)
    except FileNotFoundError:
        raise ExportRefused(
            f"The checkpoint after step {export.step:,} was removed by the retention rule before a "
            "worker came to it. Export a newer one, or raise checkpoint.keep_last."
        ) from None
    folder.write_order(write_order(checkpoint, export.dtype))
    return folder


def hold_checkpoint(source: Path, target: Path) -> None:
    """Second names for what an export needs of a checkpoint. Raises OSError."""
    for path in sorted(source.iterdir()):
        if path.name not in BESIDE_MODEL:
            link_or_copy(str(path), str(target / path.name))


def write_order(checkpoint: Checkpoint, dtype: str) -> ExportOrder:
    """What to make, with everything that the folder shall tell about itself, in English."""
    with override("en"):
        return _write_order(checkpoint, dtype)


def _write_order(checkpoint: Checkpoint, dtype: str) -> ExportOrder:
    kind: ExportDtype = "bfloat16" if dtype == "bfloat16" else "float32"
    lineage = read_lineage(checkpoint)
    return ExportOrder(
        dtype=kind,
        documents={
            CARD: render_card(lineage, kind),
            LINEAGE: as_json(lineage),
            SPEC: spec_to_yaml(checkpoint.run.read_spec()),
        },
    )
