"""What people do with steps under glass: ask for one, cancel it, delete it; and the spring-clean.

Called by the views and by the reaper.
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
from webapp.accounts.models import Project, User
from webapp.audit.record import record
from webapp.glass.dispatch import send_glass_on_commit
from webapp.glass.hints import tell
from webapp.glass.models import GlassStep
from webapp.glass.subjects import Subject

logger = logging.getLogger(__name__)

KEEP = timedelta(days=30)
"""How long a step that has ended is kept."""
PRUNED_AT_ONCE = 20
KEY_FORM = re.compile(r"[0-9a-zA-Z-]{1,64}")
State = GlassStep.State


def ask_for_step(
    owner: User, project: Project, subject: Subject, spec: GlassSpec, key: str = ""
) -> GlassStep:
    """Queue a step. The same key of the same owner gives the same step."""
    key = key if KEY_FORM.fullmatch(key) else ""
    if key and (known := GlassStep.objects.filter(owner=owner, idempotency_key=key).first()):
        return known
    try:
        with transaction.atomic():
            step = GlassStep.objects.create(
                owner=owner,
                project=project,
                run=subject.run,
                checkpoint=subject.checkpoint,
                title=subject.title,
                spec=spec.model_dump(mode="json"),
                idempotency_key=key,
            )
            _note("glass.ask", step, owner)
            tell(step)
            send_glass_on_commit(step.pk)
    except IntegrityError:
        if not key:
            raise
        # A double click: the other request was first.
        return GlassStep.objects.exclude(idempotency_key="").get(owner=owner, idempotency_key=key)
    return step


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
        _note("glass.cancel", step, actor)
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
        _note("glass.delete", row, actor)
    row.delete()
    transaction.on_commit(lambda: _remove(directory), robust=True)
    return True


def prune_glass() -> int:
    """Delete what has ended long ago; how many there were. A few a round: the reaper is short."""
    old = GlassStep.objects.filter(finished_at__lt=timezone.now() - KEEP)
    return sum(delete_step(step) for step in old.order_by("finished_at")[:PRUNED_AT_ONCE])


def _note(action: str, step: GlassStep, actor: User) -> None:
    """An entry of the audit log, in the transaction of the deed."""
    record(action, actor=actor, kind="glass", key=step.pk, label=step.title, project=step.project)


def _remove(directory: Path) -> None:
    """Out of sight at once, then off the disk."""
    if directory.is_dir():
        grave = Path(settings.GLASS_DIR) / f".deleted-{uuid4().hex}"
        directory.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
