"""A checkpoint as a plain model folder: weights, configs, tokenizer, card and hashes, checked.

Called by `workers.export_main`, in a process that may be killed at any moment: everything is
written aside, and the folder appears whole. It is loaded as its user will load it before it is
given out: a model that computes something else than the checkpoint is never offered.

Shaped for more than one form of weights: `_write_weights` is the only part that knows the form, and
an adapter's `merged` and `adapter` would be two more branches of it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoTokenizer

from training_core.checkpoints import Manifest, read_manifest, verify_files
from training_core.contract.exports import (
    SUMS,
    ExportDir,
    ExportDtype,
    ExportedFile,
    ExportOrder,
    ExportResult,
)
from training_core.contract.rundir import BESIDE_MODEL, fsync_directory
from training_core.exports.check import checked_words, compare_folders
from training_core.exports.meter import Meter, Tell
from training_core.failures import BadCheckpoint
from training_core.models.eos import find_eos_ids

CARD, CONFIG, GENERATION = "README.md", "config.json", "generation_config.json"
WEIGHTS_INDEX = "model.safetensors.index.json"
ANOTHER = "Export another checkpoint of the run."


def export_checkpoint(folder: ExportDir, tell: Tell) -> ExportResult:
    """Make `model/` of `source/`, which is let go then. `tell` hears of bytes done.

    Raises BadCheckpoint or OSError; there is no `model/` then.
    """
    order = folder.read_order()
    shutil.rmtree(folder.aside, ignore_errors=True)
    folder.aside.mkdir()
    try:
        result = _fill(folder.source, folder.aside, order, tell)
        folder.aside.rename(folder.model)
        fsync_directory(folder.root)
        shutil.rmtree(folder.source, ignore_errors=True)  # its second names would hold the disk
        return result
    finally:
        shutil.rmtree(folder.aside, ignore_errors=True)


def _fill(source: Path, target: Path, order: ExportOrder, tell: Tell) -> ExportResult:
    """Everything that belongs into the folder, in the order in which it may fail."""
    manifest = _read_manifest(source)
    names = [name for name in sorted(manifest.files) if name not in BESIDE_MODEL]
    weights = [name for name in names if name.endswith(".safetensors")]
    size = sum(manifest.files[name].size for name in weights)
    meter = Meter(tell, total=5 * size)  # hash, write, load, load, hash
    meter.say("Checking the checkpoint's hashes")
    try:
        verify_files(source, manifest, names, meter.add)
    except (OSError, ValueError) as error:
        raise BadCheckpoint(
            f"The checkpoint after step {manifest.step} is damaged: {error}.", ANOTHER
        ) from error
    meter.say("Writing the weights")
    parameters = sum(
        _write_weights(source / name, target / name, order.dtype, meter) for name in weights
    )
    _copy_texts(source, target, [name for name in names if name not in weights], order.dtype)
    _write_ends(target)
    check = compare_folders(source, target, order.dtype, size, meter)
    texts = dict(order.documents)
    texts[CARD] = texts.get(CARD, "") + checked_words(check, order.dtype)
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    meter.say("Hashing the files")
    return ExportResult(
        outcome="ready", parameters=parameters, check=check, files=_seal(target, meter)
    )


def _read_manifest(source: Path) -> Manifest:
    """What the checkpoint says it is."""
    try:
        return read_manifest(source)
    except (OSError, ValueError) as error:
        raise BadCheckpoint(
            "The checkpoint has no manifest that can be read, so nobody knows whether it is whole.",
            ANOTHER,
        ) from error


def _write_weights(source: Path, target: Path, dtype: ExportDtype, meter: Meter) -> int:
    """One file of weights in the wanted type; how many weights it holds.

    A checkpoint holds float32, so float32 is the same file under a second name: bit for bit what
    was trained, and free of charge.
    """
    try:
        tensors = load_file(source)
        wanted: torch.dtype = getattr(torch, dtype)
        if all(tensor.dtype == wanted for tensor in tensors.values()):
            link_or_copy(source, target)
        else:
            cast = {
                name: tensor.to(wanted) if tensor.is_floating_point() else tensor
                for name, tensor in tensors.items()
            }
            save_file(cast, target, metadata={"format": "pt"})
    except SafetensorError as error:
        if f"os error {errno.ENOSPC}" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise BadCheckpoint(
            f"{source.name} of the checkpoint cannot be read: {error}.", ANOTHER
        ) from error
    meter.add(source.stat().st_size)
    return sum(tensor.numel() for tensor in tensors.values())


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file that nobody changes, or a copy where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _copy_texts(source: Path, target: Path, names: Iterable[str], dtype: ExportDtype) -> None:
    """Configs and tokenizer; the config and the index say the type and size of the weights."""
    for name in names:
        shutil.copyfile(source / name, target / name)
    config = _read_json(target / CONFIG)
    parts = [value for value in config.values() if isinstance(value, dict)]
    for holder in (config, *(part for part in parts if {"dtype", "torch_dtype"} & part.keys())):
        holder.pop("torch_dtype", None)
        holder["dtype"] = dtype
    _write_json(target / CONFIG, config)
    if (target / WEIGHTS_INDEX).is_file():
        index = _read_json(target / WEIGHTS_INDEX)
        files = {target / name for name in index.get("weight_map", {}).values()}
        index.setdefault("metadata", {})["total_size"] = sum(f.stat().st_size for f in files)
        _write_json(target / WEIGHTS_INDEX, index)


def _write_ends(target: Path) -> None:
    """Let `generate` stop where the policy stopped: many models end a turn with another token than
    the one that their files name."""
    path = target / GENERATION
    settings = _read_json(path) if path.is_file() else {}
    tokenizer = AutoTokenizer.from_pretrained(target, local_files_only=True)
    known = SimpleNamespace(
        config=AutoConfig.from_pretrained(target, local_files_only=True),
        generation_config=SimpleNamespace(eos_token_id=settings.get("eos_token_id")),
    )
    ends = find_eos_ids(known, tokenizer)
    if ends:
        settings["eos_token_id"] = ends[0] if len(ends) == 1 else list(ends)
    if tokenizer.pad_token_id is not None:
        settings["pad_token_id"] = tokenizer.pad_token_id
    _write_json(path, settings)


def _seal(target: Path, meter: Meter) -> tuple[ExportedFile, ...]:
    """Hash every file, write the list of hashes, force all to disk."""
    found = [_hash(path, meter) for path in sorted(target.iterdir())]
    (target / SUMS).write_text("".join(f"{file.sha256}  {file.name}\n" for file in found))
    found.append(_hash(target / SUMS, meter))
    fsync_directory(target)
    return tuple(sorted(found, key=lambda file: file.name))


def _hash(path: Path, meter: Meter) -> ExportedFile:
    """One file with its size and hash, forced to disk."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
            meter.add(len(block))
        os.fsync(file.fileno())
    return ExportedFile(name=path.name, size=path.stat().st_size, sha256=digest.hexdigest())


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object. Raises BadCheckpoint."""
    try:
        content: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadCheckpoint(
            f"{path.name} of the checkpoint is no JSON file: {error}.", ANOTHER
        ) from error
    return dict(content)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
