"""`manage.py restore`: an installation from a backup, where there is none.

Never overwrites: it refuses a database that has tables and folders that have files, unless they
are what an interrupted restore of the same backup has left. Each file is checked as it is copied;
the database comes last, in one transaction. What the files know and the rows do not, since runs
went on while the backup was taken, is read from the files afterwards.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from webapp.launcher import database_steps
from webapp.launcher.backup import Progress, Say
from webapp.launcher.backup_files import (
    DUMP,
    EXPORTS,
    GLASS,
    MODELS,
    RUNS,
    SECRET_KEY,
    UPLOADS,
    Copier,
    Manifest,
    read_manifest,
)
from webapp.launcher.database_at_hand import database_alone
from webapp.launcher.dump_programs import run_program
from webapp.launcher.errors import LauncherError
from webapp.launcher.paths import RESTORE_NOTE, data_dir
from webapp.launcher.privacy import make_private
from webapp.lifecycle import reingest
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint, Run


def restore(source: Path, say: Say) -> Manifest:
    """Restore into an empty installation. Raises LauncherError."""
    source = source.expanduser().absolute()
    manifest = read_manifest(source)
    _refuse_newer(manifest)
    base = data_dir()
    make_private(base)
    try:
        with database_alone(base):
            _refuse_occupied(base, source)
            (base / RESTORE_NOTE).write_text(str(source))
            copy_back(source, manifest, say)
            options = ("--no-owner", "--no-privileges", "--no-comments", "--single-transaction")
            major = max(manifest.postgres, database_steps.server_major())
            run_program("pg_restore", major, *options, str(source / DUMP))
            database_steps.migrate()
            read_what_rows_lack(say)
            (base / RESTORE_NOTE).unlink()
    except OSError as error:
        raise LauncherError(f"The backup could not be restored: {error}.") from error
    return manifest


def _refuse_newer(manifest: Manifest) -> None:
    """A schema that this code does not know."""
    known = {".".join(each) for each in database_steps.known_migrations()}
    unknown = sorted(set(manifest.migrations) - known)
    if unknown:
        raise LauncherError(
            f"The backup was made by other code (version {manifest.code}): this one lacks "
            f"{len(unknown)} of its migrations, such as {unknown[0]}. Check that version out."
        )


def _refuse_occupied(base: Path, source: Path) -> None:
    """Anything that is there already; what an interrupted restore has left is removed."""
    if database_steps.count_tables():
        raise LauncherError(
            "The database has tables already, and a backup is restored into an empty one alone. "
            f"Move {base} away, or name an empty database in DATABASE_URL, and repeat."
        )
    places = settings.RUNS_DIR, settings.UPLOADS_DIR, settings.GLASS_DIR, settings.EXPORTS_DIR
    folders = [Path(each) for each in places]
    is_left = (base / RESTORE_NOTE).is_file() and (base / RESTORE_NOTE).read_text() == str(source)
    for folder in folders:
        found = [path for path in folder.glob("[!.]*") if path.exists()]
        if found and not is_left:
            raise LauncherError(
                f"{folder} holds {found[0].name}, and a backup is restored into empty folders "
                "alone. Move it away and repeat."
            )
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def copy_back(source: Path, manifest: Manifest, say: Say) -> None:
    """Every file to where it belongs, checked. Raises LauncherError at the first damaged one."""
    places = {
        RUNS: Path(settings.RUNS_DIR),
        UPLOADS: Path(settings.UPLOADS_DIR),
        GLASS: Path(settings.GLASS_DIR),
        EXPORTS: Path(settings.EXPORTS_DIR),
        MODELS: Path(settings.MODELS_DIR),
    }
    progress = Progress(sum(entry.size_bytes for entry in manifest.files.values()), say)
    copiers = {name: Copier(place, progress.add) for name, place in places.items()}
    for name, entry in manifest.files.items():
        top, _, inside = name.partition("/")
        if top == DUMP:
            continue
        if top == SECRET_KEY:
            _put_key(source / name)
            continue
        if top == MODELS and (places[MODELS] / inside).exists():
            continue  # prepared already
        if copiers[top].copy(source / name, inside) != entry:
            raise LauncherError(f"The backup is damaged: {source / name} has changed.")
    checker = Copier(source, progress.add)
    checker.note(DUMP)
    if checker.files[DUMP] != manifest.files[DUMP]:
        raise LauncherError(f"The backup is damaged: {source / DUMP} has changed.")


def _put_key(source: Path) -> None:
    """Django's key, so that nobody is signed out."""
    target = data_dir() / SECRET_KEY
    aside = target.with_name(f".{SECRET_KEY}-{os.getpid()}")
    aside.touch(mode=0o600)
    aside.write_bytes(source.read_bytes())
    aside.replace(target)


def read_what_rows_lack(say: Say) -> None:
    """Attempts that began after the dump; checkpoints that were removed before they were copied.

    Events of attempts that the rows know are read by the next worker or the reaper, as after a
    kill.
    """
    for run in Run.objects.order_by("number"):
        newest = max(run.run_dir.attempts(), default=0)
        if newest > run.attempt:
            Run.objects.filter(pk=run.pk).update(attempt=newest)
            reingest(run.pk)
            say(f"  run #{run.number} went on during the backup: its rows are from its files")
    gone = [each.pk for each in Checkpoint.objects.on_disk() if not each.directory.is_dir()]
    Checkpoint.objects.filter(pk__in=gone).update(removed_at=timezone.now())
    ready = ModelExport.objects.filter(state=ModelExport.State.READY)
    gone_exports = [each.pk for each in ready if not each.folder.model.is_dir()]
    ready.filter(pk__in=gone_exports).update(state=ModelExport.State.EXPIRED)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
