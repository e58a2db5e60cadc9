"""The files of a backup: copied with their hashes, and listed in a manifest.

Called by `backup.py` and `restore.py`. What would surprise:
- Runs may be live while they are copied. Checkpoints come first, then events, then the rest: as
  after a kill in that moment, no checkpoint is ahead of the events, and the run resumes exactly.
- Files that only grow are copied up to their last whole line.
- Names that begin with a dot are being written or removed, and are left out.
- Two names of one file (a run that was started from another's checkpoint) stay two names of one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from pydantic import BaseModel, ValidationError

from webapp.launcher.errors import LauncherError

MANIFEST = "manifest.json"
DUMP = "database.dump"
RUNS, UPLOADS, GLASS, EXPORTS, MODELS = "runs", "uploads", "glass", "exports", "models"
SECRET_KEY = "secret_key"
GROWING = frozenset({"events.jsonl", "control.jsonl"})
CHUNK_BYTES = 1 << 20
CHECKPOINT_TRIES = 5


class FileEntry(BaseModel):
    """What a file holds."""

    size_bytes: int
    sha256: str


class Manifest(BaseModel):
    """What a backup holds, and what made it. Written last: without it a folder is no backup."""

    format: Literal[1] = 1
    made_at: datetime
    code: str
    """Version of the code, as in `code_version`."""
    postgres: int
    """Major version of the server."""
    migrations: list[str]
    """`app.name` of each that the database has."""
    runs: int
    datasets: int
    has_models: bool
    files: dict[str, FileEntry]
    """By path below the backup."""


class Copier:
    """Copies files below one folder and keeps what they hold."""

    def __init__(self, target: Path, progress: Callable[[int], None]) -> None:
        """`progress` is told the bytes of each part that is written."""
        self.target = target
        self.files: dict[str, FileEntry] = {}
        self._progress = progress
        self._copies: dict[tuple[int, int], str] = {}

    def copy(self, source: Path, name: str) -> FileEntry:
        """One file. Raises FileNotFoundError when it is gone, OSError when it cannot be copied."""
        target = self.target / name
        with source.open("rb") as file:
            facts = os.fstat(file.fileno())
            twin = self._copies.get((facts.st_dev, facts.st_ino))
            target.parent.mkdir(parents=True, exist_ok=True)
            if twin is not None:
                os.link(self.target / twin, target)
                self.files[name] = self.files[twin]
                return self.files[name]
            with target.open("xb") as out:
                self.files[name] = self._pour(_parts(file, source.name in GROWING), out)
        os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        if facts.st_nlink > 1:
            self._copies[facts.st_dev, facts.st_ino] = name
        return self.files[name]

    def copy_tree(self, source: Path, name: str) -> None:
        """All files of a folder that are not copied yet; those that vanish meanwhile are not."""
        for path in files_below(source):
            inside = str(PurePosixPath(name, path.relative_to(source)))
            if inside not in self.files:
                with suppress(FileNotFoundError):
                    self.copy(path, inside)

    def note(self, name: str) -> None:
        """List a file that is there already."""
        with (self.target / name).open("rb") as file:
            self.files[name] = _digest(_parts(file, False))

    def forget(self, name: str) -> None:
        """Take a folder out again."""
        shutil.rmtree(self.target / name, ignore_errors=True)
        gone = {each for each in self.files if each.startswith(f"{name}/")}
        self.files = {each: entry for each, entry in self.files.items() if each not in gone}
        self._copies = {key: each for key, each in self._copies.items() if each not in gone}

    def _pour(self, parts: Iterable[bytes], out: BinaryIO) -> FileEntry:
        """Write, count and hash."""

        def written() -> Iterator[bytes]:
            for part in parts:
                out.write(part)
                self._progress(len(part))
                yield part

        return _digest(written())


def copy_run(copier: Copier, source: Path, name: str) -> None:
    """One run's directory, which may be growing."""
    for _ in range(CHECKPOINT_TRIES):
        if _copy_checkpoints(copier, source / "checkpoints", f"{name}/checkpoints"):
            break
    copier.copy_tree(source / "attempts", f"{name}/attempts")
    for path in sorted(source.iterdir()):
        if path.name in {"checkpoints", "attempts"} or path.name.startswith("."):
            continue
        if path.is_dir():
            copier.copy_tree(path, f"{name}/{path.name}")
        else:
            copier.copy(path, f"{name}/{path.name}")


def _copy_checkpoints(copier: Copier, source: Path, name: str) -> bool:
    """All that stay while they are copied; False when the newest did not, so that one is missing.

    The newest comes first: the retention rule removes older ones when a newer is whole.
    """
    folders = sorted(source.glob("[!.]*"), reverse=True) if source.is_dir() else []
    has_newest = True
    for folder in folders:
        inside = f"{name}/{folder.name}"
        if any(each.startswith(f"{inside}/") for each in copier.files):
            continue
        if not _copy_whole(copier, folder, inside):
            copier.forget(inside)
            has_newest = has_newest and folder != folders[0]
    return has_newest


def _copy_whole(copier: Copier, folder: Path, name: str) -> bool:
    """A folder that nobody changes; False when it was removed meanwhile."""
    paths = list(files_below(folder))
    try:
        for path in paths:
            copier.copy(path, str(PurePosixPath(name, path.relative_to(folder))))
    except FileNotFoundError:
        return False
    return bool(paths) and list(files_below(folder)) == paths


def files_below(folder: Path) -> Iterator[Path]:
    """Files of a folder and its folders, in order."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for each in sorted(names):
            path = Path(root, each)
            if not each.startswith(".") and path.is_file():
                yield path


def read_manifest(folder: Path) -> Manifest:
    """What a backup holds. Raises LauncherError for a folder that is none, or lacks a file."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise LauncherError(
            f"{folder} is no backup: {MANIFEST} cannot be read ({error})."
        ) from error
    for name, entry in manifest.files.items():
        path = folder / name
        if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
            raise LauncherError(f"{folder / MANIFEST} names {name}, which is not below it.")
        if not path.is_file() or path.stat().st_size != entry.size_bytes:
            raise LauncherError(f"The backup is damaged: {path} is missing or has another size.")
    return manifest


def _parts(file: BinaryIO, whole_lines: bool) -> Iterator[bytes]:
    """A file piece by piece, up to its end or to its last whole line."""
    rest = b""
    while part := file.read(CHUNK_BYTES):
        if whole_lines:
            part, rest = _cut(rest + part)
        yield part


def _cut(text: bytes) -> tuple[bytes, bytes]:
    """What stands before the last line end and with it, and what is left."""
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


def _digest(parts: Iterable[bytes]) -> FileEntry:
    """Size and hash of what passes."""
    digest, size = hashlib.sha256(), 0
    for part in parts:
        digest.update(part)
        size += len(part)
    return FileEntry(size_bytes=size, sha256=digest.hexdigest())
