"""`manage.py backup`: database and files of an installation in a folder, runs going on meanwhile.

The database is dumped first, from one snapshot, then the files are copied. So files may know more
than the database, never less: the run directory is the truth, and `restore` and the reaper read
from it what the rows lack. Written aside and renamed: a folder under its name is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import connection, transaction

from webapp.datasets.models import Dataset, DatasetImport
from webapp.glass.models import GlassStep
from webapp.launcher import database_steps
from webapp.launcher.backup_files import (
    DUMP,
    EXPORTS,
    GLASS,
    MANIFEST,
    MODELS,
    RUNS,
    SECRET_KEY,
    UPLOADS,
    Copier,
    Manifest,
    copy_run,
)
from webapp.launcher.code_version import code_version
from webapp.launcher.console import readable_size, size_of
from webapp.launcher.database_at_hand import database_to_read
from webapp.launcher.dump_programs import run_program
from webapp.launcher.errors import LauncherError
from webapp.launcher.paths import data_dir
from webapp.registry.models import ModelExport
from webapp.runs.models import Run

Say = Callable[[str], None]
TELL_EVERY_S = 5.0
ALONE = 0o077
"""A backup holds password hashes and what people wrote: it is its maker's alone."""


class Contents(NamedTuple):
    """What the database knows in the moment of its dump."""

    snapshot: str
    """Under which pg_dump sees the same."""
    runs: list[str]
    uploads: list[str]
    glass: list[str]
    """Steps under glass and tryouts."""
    exports: list[str]
    """Checkpoints made into model folders; runs may start from them."""
    datasets: int
    migrations: list[str]
    postgres: int


@dataclass
class Progress:
    """Says now and then how far a long copy is."""

    total: int
    say: Say
    done: int = 0
    _told: float = field(default_factory=time.monotonic)

    def add(self, size: int) -> None:
        """So many bytes more."""
        self.done += size
        if time.monotonic() - self._told >= TELL_EVERY_S:
            self._told = time.monotonic()
            of = readable_size(max(self.total, self.done))
            self.say(f"  {readable_size(self.done)} of {of}")


def take_backup(target: Path, say: Say, *, with_models: bool = False) -> Manifest:
    """Back up to a folder that does not exist yet. Raises LauncherError."""
    target = target.expanduser().absolute()
    _refuse_bad_target(target)
    aside = target.with_name(f".{target.name}.partial")
    before = os.umask(ALONE)
    try:
        with database_to_read(data_dir()):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            try:
                manifest = _fill(aside, say, with_models)
                os.sync()
                aside.rename(target)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
    except OSError as error:
        raise LauncherError(f"The backup could not be written: {error}.") from error
    finally:
        os.umask(before)
    return manifest


def _refuse_bad_target(target: Path) -> None:
    """A name that is taken, or lies in what is copied."""
    if target.exists() or target.is_symlink():
        raise LauncherError(f"{target} exists already: name a folder that does not.")
    for folder in _folders(with_models=True):
        if target.resolve().is_relative_to(folder.resolve()):
            raise LauncherError(f"{target} lies in {folder}, which is backed up: choose another.")


def _fill(folder: Path, say: Say, with_models: bool) -> Manifest:
    """Database, then files, then the manifest."""
    _refuse_small_disk(folder, with_models)
    with look_at_contents() as contents:
        dump_database(folder, contents)
    say(f"  database {readable_size((folder / DUMP).stat().st_size)}")
    copier = Copier(folder, Progress(_size_of_files(with_models), say).add)
    copier.note(DUMP)
    copy_files(copier, contents, say)
    if with_models:
        copier.copy_tree(Path(settings.MODELS_DIR), MODELS)
    manifest = Manifest(
        made_at=datetime.now(UTC),
        code=code_version(),
        postgres=contents.postgres,
        migrations=contents.migrations,
        runs=len(contents.runs),
        datasets=contents.datasets,
        has_models=with_models,
        files=copier.files,
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1))
    return manifest


def _folders(with_models: bool) -> list[Path]:
    """Where the files lie that are copied."""
    folders = [settings.RUNS_DIR, settings.UPLOADS_DIR, settings.GLASS_DIR, settings.EXPORTS_DIR]
    return [Path(each) for each in (*folders, *([settings.MODELS_DIR] if with_models else []))]


def _size_of_files(with_models: bool) -> int:
    """Bytes in them."""
    return sum(size_of(folder) for folder in _folders(with_models))


def _refuse_small_disk(folder: Path, with_models: bool) -> None:
    """Better now than after an hour."""
    needed = _size_of_files(with_models) + database_steps.database_size()
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise LauncherError(
            f"The backup may need {readable_size(needed)} and the disk of {folder.parent} has "
            f"{readable_size(free)} free: choose a folder on a larger disk."
        )


@contextlib.contextmanager
def look_at_contents() -> Iterator[Contents]:
    """What there is, in a snapshot that stays until the end."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            [snapshot] = cursor.fetchone()
        yield Contents(
            snapshot=snapshot,
            runs=[str(pk) for pk in Run.objects.order_by("number").values_list("pk", flat=True)],
            uploads=list(DatasetImport.objects.values_list("path", flat=True)),
            glass=[str(pk) for pk in GlassStep.objects.order_by("pk").values_list("pk", flat=True)],
            exports=[
                f"{run}/{pk}"
                for run, pk in ModelExport.objects.filter(state=ModelExport.State.READY)
                .order_by("pk")
                .values_list("run_id", "pk")
            ],
            datasets=Dataset.objects.count(),
            migrations=sorted(".".join(each) for each in database_steps.applied_migrations()),
            postgres=database_steps.server_major(),
        )


def dump_database(folder: Path, contents: Contents) -> None:
    """The database as the snapshot sees it."""
    options = ("--format=custom", f"--snapshot={contents.snapshot}", f"--file={folder / DUMP}")
    run_program("pg_dump", contents.postgres, *options)


def copy_files(copier: Copier, contents: Contents, say: Say) -> None:
    """What the rows of the snapshot speak of, as it is by now."""
    for run in contents.runs:
        source = Path(settings.RUNS_DIR) / run
        if not source.is_dir():
            continue  # it waits for its first worker
        try:
            copy_run(copier, source, f"{RUNS}/{run}")
        except FileNotFoundError:
            copier.forget(f"{RUNS}/{run}")
            say(f"  run {run} was deleted meanwhile: its files are left out")
    for upload in contents.uploads:
        with contextlib.suppress(FileNotFoundError):  # an upload that was no file we read
            copier.copy(Path(settings.UPLOADS_DIR) / upload, f"{UPLOADS}/{upload}")
    for step in contents.glass:
        copier.copy_tree(Path(settings.GLASS_DIR) / step, f"{GLASS}/{step}")
    for export in contents.exports:
        copier.copy_tree(Path(settings.EXPORTS_DIR) / export, f"{EXPORTS}/{export}")
    key = data_dir() / SECRET_KEY
    if key.exists():
        copier.copy(key, SECRET_KEY)
