"""The run directory: the truth of a run, as paths and as the few operations that keep it true.

    spec.json            the frozen RunSpec
    owner.json           which attempt may write checkpoints: {attempt, token}
    control.jsonl        commands of people, appended by the supervisor
    datasets/ID.jsonl    frozen copy of each dataset version, one DatasetRecord a line
    attempts/K/          events.jsonl, console.log, end.json (how it ended, by the supervisor)
    rollouts/            aK-train-000012.jsonl, aK-evaluate-000012.jsonl
    checkpoints/         step-000012/, written aside as .tmp-..., fsynced, renamed

Used by the trainer (writes), the supervisor (owner, control) and ingest (reads).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from training_core.contract.control import ControlCommand
from training_core.contract.spec import RunSpec

MANIFEST, STATE = "manifest.json", "state.json"
OPTIMISER, REFERENCE = "optimiser.safetensors", "reference.safetensors"
BESIDE_MODEL = frozenset({STATE, OPTIMISER, REFERENCE})
"""Files of a checkpoint that a model folder has no use for."""


class RunDir:
    """Typed access to one run directory."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @property
    def spec_file(self) -> Path:
        """The frozen RunSpec."""
        return self.root / "spec.json"

    @property
    def owner_file(self) -> Path:
        """Which attempt may write."""
        return self.root / "owner.json"

    @property
    def control_file(self) -> Path:
        """Commands of people."""
        return self.root / "control.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Directory of checkpoints."""
        return self.root / "checkpoints"

    @property
    def rollouts(self) -> Path:
        """Directory of rollout files."""
        return self.root / "rollouts"

    def dataset_file(self, dataset_version: str) -> Path:
        """Frozen copy of a dataset version."""
        return self.root / "datasets" / f"{dataset_version}.jsonl"

    def attempt(self, number: int) -> Path:
        """Directory of one attempt."""
        return self.root / "attempts" / str(number)

    def events_file(self, attempt: int) -> Path:
        """Events of one attempt."""
        return self.attempt(attempt) / "events.jsonl"

    def console_file(self, attempt: int) -> Path:
        """What the trainer printed in one attempt."""
        return self.attempt(attempt) / "console.log"

    def end_file(self, attempt: int) -> Path:
        """How an attempt ended, as the control plane judged it."""
        return self.attempt(attempt) / "end.json"

    def rollout_file(self, attempt: int, kind: str, step: int) -> Path:
        """Rollouts of one step in one attempt."""
        return self.rollouts / f"a{attempt}-{kind}-{step:06d}.jsonl"

    def checkpoint(self, step: int) -> Path:
        """Directory of the checkpoint after `step` steps."""
        return self.checkpoints / f"step-{step:06d}"

    def attempts(self) -> list[int]:
        """Numbers of all attempts, in order."""
        parent = self.root / "attempts"
        if not parent.is_dir():
            return []
        return sorted(int(p.name) for p in parent.iterdir() if p.name.isdecimal())

    def write_spec(self, spec: RunSpec) -> None:
        """Write the spec once; a run's spec never changes after that."""
        self.root.mkdir(parents=True, exist_ok=True)
        if not self.spec_file.exists():
            write_atomic(self.spec_file, spec.model_dump_json(indent=2).encode())

    def read_spec(self) -> RunSpec:
        """The frozen spec. Raises pydantic.ValidationError or OSError."""
        return RunSpec.model_validate_json(self.spec_file.read_bytes())

    def write_owner(self, attempt: int, token: int) -> None:
        """Hand the directory to one attempt; the attempts before it may write no more."""
        write_atomic(self.owner_file, json.dumps({"attempt": attempt, "token": token}).encode())

    def read_owner(self) -> tuple[int, int]:
        """(attempt, token) that owns the directory."""
        owner = json.loads(self.owner_file.read_bytes())
        return int(owner["attempt"]), int(owner["token"])

    def append_control(self, command: ControlCommand) -> None:
        """Append one command and force it to disk."""
        with self.control_file.open("ab") as file:
            file.write(command.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read_control(self) -> list[ControlCommand]:
        """All commands so far, oldest first."""
        return [
            ControlCommand.model_validate_json(line) for _, line in whole_lines(self.control_file)
        ]


def whole_lines(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset after the line, line) for each complete line from a byte offset on.

    A torn last line, left by a kill or still being written, is not yielded. A missing file has no
    lines.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield offset, line[:-1]


def write_atomic(path: Path, content: bytes) -> None:
    """Write a whole file or nothing: aside, fsynced, renamed, directory fsynced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    with aside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    fsync_directory(path.parent)


def fsync_directory(path: Path) -> None:
    """Force a rename in a directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
