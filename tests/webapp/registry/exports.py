"""Exports for tests of pages: rows with a folder behind them, without a model inside."""

from __future__ import annotations

import hashlib
from typing import Any

from django.utils import timezone

from training_core.contract.exports import ExportCheck, ExportedFile
from webapp.accounts.models import User
from webapp.registry.models import KEEP, ModelExport
from webapp.runs.models import Checkpoint

CONTENT = {
    "README.md": b"# A model\n",
    "config.json": b"{}\n",
    "model.safetensors": bytes(range(256)) * 20,
    "tokenizer.json": b"{}\n",
    "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}\n',
}


def make_ready(checkpoint: Checkpoint, owner: User, **changes: Any) -> ModelExport:
    """An export that can be downloaded."""
    now = timezone.now()
    check = ExportCheck(tokens=31, largest_difference=0.0, same_choice=31)
    fields: dict[str, Any] = {
        "state": ModelExport.State.READY,
        "parameters": 821_120,
        "attempts": 1,
        "check_result": check.model_dump(mode="json"),
        "finished_at": now,
        "expires_at": now + KEEP,
    }
    export = make_export(checkpoint, owner, **(fields | changes))
    export.folder.model.mkdir(parents=True)
    for name, content in CONTENT.items():
        (export.folder.model / name).write_bytes(content)
    files = [
        ExportedFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in CONTENT.items()
    ]
    export.files = [file.model_dump() for file in files]
    export.size_bytes = sum(file.size for file in files)
    export.save()
    return export


def make_export(checkpoint: Checkpoint, owner: User, **changes: Any) -> ModelExport:
    """A row in the queue."""
    fields: dict[str, Any] = {
        "run": checkpoint.run,
        "checkpoint": checkpoint,
        "owner": owner,
        "step": checkpoint.step,
        "saved_at": checkpoint.created_at,
        "dtype": "float32",
    }
    return ModelExport.objects.create(**(fields | changes))
