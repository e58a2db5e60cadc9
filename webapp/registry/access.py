"""Who may see, make and remove exports: the only way in which a view gets one.

An export belongs to its run: who sees the run sees and downloads its exports. Making one takes the
right to export in the run's project. It is cancelled, kept and deleted by who made it, by who
steers the run, and by the project's admins.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may, role_in, who_may
from webapp.registry.models import ExportQuerySet, ModelExport
from webapp.runs.access import can_control, get_checkpoint_for_user
from webapp.runs.models import Checkpoint, CheckpointQuerySet, Run

Anybody = User | AnonymousUser


def exports_for(user: Anybody, project: Project | None = None) -> ExportQuerySet:
    """Exports that the user may see, of one project where it is given."""
    return ModelExport.objects.filter(run__in=runs_for(user, project))


def checkpoints_for(user: Anybody, project: Project | None = None) -> CheckpointQuerySet:
    """Checkpoints that the user may see and that are on disk."""
    return Checkpoint.objects.on_disk().filter(run__in=runs_for(user, project))


def runs_for(user: Anybody, project: Project | None = None) -> QuerySet[Run]:
    """Runs that the user may see, of one project where it is given."""
    runs = Run.objects.visible_to(user)
    return runs if project is None else runs.filter(project=project)


def get_export_for_user(user: Anybody, pk: UUID) -> ModelExport:
    """The export. Raises Http404."""
    found = exports_for(user).select_related("run__owner", "run__project", "owner")
    export = found.filter(pk=pk).first()
    if export is None:
        raise Http404(_("There is no such export."))
    return export


def get_exportable_checkpoint(user: Anybody, pk: int) -> Checkpoint:
    """A checkpoint to export it, also one that retention has removed.

    Raises Http404, or PermissionDenied, with who can.
    """
    checkpoint = get_checkpoint_for_user(user, pk)
    refuse_without_export(user, checkpoint.run.project)
    return checkpoint


def refuse_without_export(user: Anybody, project: Project) -> None:
    """Raise PermissionDenied, with who can, for somebody who makes no exports in the project."""
    if not may(user, Right.EXPORT, project):
        raise PermissionDenied(_why_no_export(user, project))


def get_changeable_export(user: Anybody, pk: UUID) -> ModelExport:
    """The export to cancel, keep or delete it.

    Raises Http404, or PermissionDenied, with who can.
    """
    export = get_export_for_user(user, pk)
    if may_change(user, export):
        return export
    project = export.run.project
    if export.owner_id == user.pk or project.archived_at is not None:
        raise PermissionDenied(_why_no_export(user, project))
    words = _(
        "This export was made by %(maker)s of %(owner)s's run; only they or %(admins)s change it."
    )
    values = {"maker": export.owner, "owner": export.run.owner}
    raise PermissionDenied(words % {**values, "admins": who_may(Right.STEER_ANY, project)})


def get_usable_export(user: Anybody, pk: UUID) -> ModelExport:
    """The export to launch a run on it. Raises Http404, or PermissionDenied, with who can."""
    export = get_export_for_user(user, pk)
    project = export.run.project
    if not may(user, Right.LAUNCH, project):
        words = _("Your role in %(project)s is %(role)s, which launches no runs. Ask %(admins)s.")
        raise PermissionDenied(_why_not(user, project, Right.LAUNCH, words))
    return export


def may_change(user: Anybody, export: ModelExport) -> bool:
    """Whether pages offer this user to cancel, keep or delete it."""
    if export.owner_id == user.pk and may(user, Right.EXPORT, export.run.project):
        return True
    return can_control(user, export.run)


def _why_no_export(user: Anybody, project: Project) -> str:
    """The sentence for somebody who exports nothing."""
    words = _("Your role in %(project)s is %(role)s, which exports no models. Ask %(admins)s.")
    return _why_not(user, project, Right.EXPORT, words)


def _why_not(user: Anybody, project: Project, right: Right, words: str) -> str:
    """The sentence for somebody who sees the project and has not the right in it."""
    if project.archived_at is not None:
        words = _("The project %(project)s is archived: nothing new is made in it.")
        return words % {"project": project}
    role = role_in(user, project)
    lack = str(role.label).lower() if role else _("none")
    return words % {"project": project, "role": lack, "admins": who_may(right, project)}
