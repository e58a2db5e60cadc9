"""Who may see, make and remove exports: the only way in which a view gets one.

An export belongs to its run: who sees the run sees its exports, may make one and download it, for
that changes nothing of the run. Only who made it, the run's owner and staff cancel or delete it.
"""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.accounts.models import User
from webapp.registry.models import ExportQuerySet, ModelExport
from webapp.runs.access import can_control
from webapp.runs.models import Checkpoint, CheckpointQuerySet, Run


def exports_for(user: User) -> ExportQuerySet:
    """Exports that the user may see."""
    return ModelExport.objects.filter(run__in=Run.objects.visible_to(user))


def get_export_for_user(user: User, pk: UUID) -> ModelExport:
    """The export. Raises Http404."""
    export = exports_for(user).select_related("run__owner", "owner").filter(pk=pk).first()
    if export is None:
        raise Http404("There is no such export.")
    return export


def get_changeable_export_for_user(user: User, pk: UUID) -> ModelExport:
    """The same to cancel, keep or delete it. Raises PermissionDenied when it is somebody else's."""
    export = get_export_for_user(user, pk)
    if not may_change(user, export):
        raise PermissionDenied(
            f"This export was made by {export.owner} of {export.run.owner}'s run; only they or "
            "staff change it."
        )
    return export


def may_change(user: User, export: ModelExport) -> bool:
    """Whether pages offer this user to cancel or delete it."""
    return export.owner_id == user.pk or can_control(user, export.run)


def checkpoints_for(user: User) -> CheckpointQuerySet:
    """Checkpoints that the user may see and that are on disk."""
    return Checkpoint.objects.on_disk().filter(run__in=Run.objects.visible_to(user))


def get_checkpoint_for_user(user: User, pk: int) -> Checkpoint:
    """A checkpoint, also one that retention has removed. Raises Http404."""
    found = Checkpoint.objects.filter(run__in=Run.objects.visible_to(user))
    checkpoint = found.select_related("run__owner").filter(pk=pk).first()
    if checkpoint is None:
        raise Http404("There is no such checkpoint.")
    return checkpoint
