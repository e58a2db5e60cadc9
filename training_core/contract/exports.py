"""Exports: what the web side asks of the process that makes a plain model folder of a checkpoint,
and what that process answers. All of it are files of the export's own directory:

    order.json      what to make; written by `webapp.registry.making`
    source/         the checkpoint, linked, so that the retention rule cannot take it away
    progress.json   how far it is, written again and again by `workers.export_main`
    result.json     how it ended, written last
    console.log     what the process printed
    model/          the folder, once it is whole

The process has nothing else to talk through, so that it can be killed at any moment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from training_core.contract.rundir import write_atomic
from training_core.contract.strict import WireModel

ExportDtype = Literal["float32", "bfloat16"]
ExportForm = Literal["full"]
CHECKED_HEADING = "## Checked when it was exported"
SUMS = "SHA256SUMS"


class ExportOrder(WireModel):
    """What to make of the checkpoint in `source/`."""

    format: int = 1
    """Version of this document's form."""
    dtype: ExportDtype
    """Type of the weights: float32 keeps them as they were trained, bfloat16 halves their size."""
    form: ExportForm = "full"
    """`full`: every weight in the model's own layout. A run that trains an adapter would add
    `merged` and `adapter`."""
    documents: dict[str, str] = Field(default_factory=dict)
    """File name to text: model card, lineage, spec."""


class ExportProgress(WireModel):
    """How far the process is."""

    done: int
    """Bytes handled."""
    total: int
    """Bytes to handle."""
    message: str
    """What it does now."""


class ExportedFile(WireModel):
    """One file of the folder."""

    name: str
    """Its name; the folder has no folders."""
    size: int
    """Bytes."""
    sha256: str
    """Hash of its content, in hex."""


class ExportCheck(WireModel):
    """What loading the folder as its user will has shown."""

    tokens: int
    """Tokens of the prompt that both read."""
    largest_difference: float
    """Largest absolute difference of a logit to the checkpoint's, both computed on this machine's
    processor."""
    same_choice: int
    """Positions of the prompt after which both hold the same token for the likeliest."""


class ExportResult(WireModel):
    """How the process ended."""

    outcome: Literal["ready", "failed"]
    """Whether there is a folder."""
    message: str = ""
    """Why there is none."""
    advice: str = ""
    """What to do about it."""
    parameters: int = 0
    """Weights in the files; a tied matrix counts once."""
    check: ExportCheck | None = None
    """None when the machine has too little memory to load the model."""
    files: tuple[ExportedFile, ...] = ()
    """All files, by name."""


class ExportDir:
    """Typed access to one export's directory."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @property
    def source(self) -> Path:
        """The checkpoint."""
        return self.root / "source"

    @property
    def model(self) -> Path:
        """The finished folder."""
        return self.root / "model"

    @property
    def aside(self) -> Path:
        """The folder in the making."""
        return self.root / ".tmp-model"

    @property
    def console_file(self) -> Path:
        """What the process printed."""
        return self.root / "console.log"

    def write_order(self, order: ExportOrder) -> None:
        """Say what to make."""
        write_atomic(self.root / "order.json", order.model_dump_json(indent=1).encode())

    def read_order(self) -> ExportOrder:
        """What to make. Raises OSError or pydantic.ValidationError."""
        return ExportOrder.model_validate_json((self.root / "order.json").read_bytes())

    def write_progress(self, progress: ExportProgress) -> None:
        """Say how far it is; not forced to disk, since only the living read it."""
        aside = self.root / ".tmp-progress.json"
        aside.write_text(progress.model_dump_json())
        aside.rename(self.root / "progress.json")

    def find_progress(self) -> ExportProgress | None:
        """How far it is, or None before the first word."""
        try:
            return ExportProgress.model_validate_json((self.root / "progress.json").read_bytes())
        except (OSError, ValueError):
            return None

    def write_result(self, result: ExportResult) -> None:
        """Say how it ended."""
        write_atomic(self.root / "result.json", result.model_dump_json(indent=1).encode())

    def find_result(self) -> ExportResult | None:
        """How it ended, or None when it did not say."""
        try:
            return ExportResult.model_validate_json((self.root / "result.json").read_bytes())
        except (OSError, ValueError):
            return None
