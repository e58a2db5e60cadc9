"""What people do with steps under glass and tryouts: ask for one, cancel it, delete it; and the
spring-clean.

Called by the views, by the check page of a dataset and by the reaper.
"""

from __future__ import annotations

import logging
import re
import shutil
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from training_core.contract.glass import GlassSpec
from training_core.contract.tryout import TryoutSpec
from webapp.accounts.models import Project, User
from webapp.audit.record import record
from webapp.datasets.models import DatasetVersion
from webapp.glass.dispatch import send_glass_on_commit
from webapp.glass.hints import tell
from webapp.glass.models import GlassStep
from webapp.glass.subjects import Subject
from webapp.runs.request_keys import bind_key

logger = logging.getLogger(__name__)

KEEP = timedelta(days=30)
"""How long a step that has ended is kept."""
PRUNED_AT_ONCE = 20
KEY_FORM = re.compile(r"[0-9a-zA-Z-]{1,64}")
KEY_KEPT = 40
"""Characters of a key beside the digest of what was asked: 64 fit."""
State = GlassStep.State


def ask_for_step(
    owner: User, project: Project, subject: Subject, spec: GlassSpec, key: str = ""
) -> GlassStep:
    """Queue a step. The same wish and key of the same owner give the same step."""
    document = spec.model_dump(mode="json")
    row = GlassStep(
        owner=owner,
        project=project,
        run=subject.run,
        checkpoint=subject.checkpoint,
        title=subject.title,
        spec=document,
    )
    return _queue(row, bind_key(key[:KEY_KEPT], document, project.pk))


def ask_for_tryout(
    owner: User, version: DatasetVersion, spec: TryoutSpec, key: str = ""
) -> GlassStep:
    """Queue a tryout in the dataset's project. The same key and spec give the same tryout."""
    document = spec.model_dump(mode="json")
    row = GlassStep(
        kind=GlassStep.Kind.TRYOUT,
        owner=owner,
        project=version.dataset.project,
        version=version,
        title=f"{spec.run.model.ref} on {version}"[:200],
        spec=document,
    )
    return _queue(row, bind_key(key[:KEY_KEPT], document))


def _queue(row: GlassStep, key: str) -> GlassStep:
    """Store a row under its key and send it, or give the one that the key has already.

    One that failed or was cancelled gives its key up: whoever asks again wants a new one.
    """
    row.idempotency_key = key if KEY_FORM.fullmatch(key) else ""
    known = GlassStep.objects.exclude(idempotency_key="").filter(
        owner=row.owner, idempotency_key=row.idempotency_key
    )
    known.filter(state__in=[State.FAILED, State.CANCELLED]).update(idempotency_key="")
    if found := known.first():
        return found
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _note("ask", row, row.owner)
            tell(row)
            send_glass_on_commit(row.pk)
    except IntegrityError:
        if not row.idempotency_key:
            raise
        return known.get()  # a double click: the other request was first
    return row


@transaction.atomic
def cancel_step(step: GlassStep, actor: User) -> bool:
    """End a step: at once while it waits, within a second while a worker has it.

    False when it had ended already.
    """
    waiting = GlassStep.objects.filter(pk=step.pk, state=State.WAITING)
    message = f"Cancelled by {actor} before a worker had it."
    moved = waiting.update(
        state=State.CANCELLED, cause="user", message=message, finished_at=timezone.now()
    )
    if not moved:
        running = GlassStep.objects.filter(pk=step.pk, state=State.RUNNING)
        moved = running.update(cancel_asked=True)
    step.refresh_from_db()
    if moved:
        _note("cancel", step, actor)
        tell(step)
    return bool(moved)


@transaction.atomic
def delete_step(step: GlassStep, actor: User | None = None) -> bool:
    """Delete a step that has ended, with its directory; False for one that has not.

    Without an actor it is the spring-clean, which the audit log does not tell of.
    """
    ended = GlassStep.objects.select_for_update(of=("self",)).filter(pk=step.pk)
    row = ended.exclude(state__in=[State.WAITING, State.RUNNING]).first()
    if row is None:
        return False
    directory = row.directory.root
    if actor is not None:
        _note("delete", row, actor)
    row.delete()
    transaction.on_commit(lambda: _remove(directory), robust=True)
    return True


def prune_glass() -> int:
    """Delete what has ended long ago; how many there were. A few a round: the reaper is short."""
    old = GlassStep.objects.filter(finished_at__lt=timezone.now() - KEEP)
    return sum(delete_step(step) for step in old.order_by("finished_at")[:PRUNED_AT_ONCE])


def _note(deed: str, step: GlassStep, actor: User) -> None:
    """An entry of the audit log, in the transaction of the deed."""
    kind = "tryout" if step.is_tryout else "glass"
    record(
        f"{kind}.{deed}",
        actor=actor,
        kind=kind,
        key=step.pk,
        label=step.title,
        project=step.project,
    )


def _remove(directory: Path) -> None:
    """Out of sight at once, then off the disk."""
    if directory.is_dir():
        grave = Path(settings.GLASS_DIR) / f".deleted-{uuid4().hex}"
        directory.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
