"""Who may see and who may change datasets: the only way in which a view gets one.

Datasets are seen by the members of their project. An import is only for who uploaded it and for the
project's curators and admins, until it is a version of a dataset; for others it does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may, projects_where, who_may
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion


def datasets_for(user: User | AnonymousUser) -> QuerySet[Dataset]:
    """Datasets that the user may see."""
    return Dataset.objects.visible_to(user)


def get_dataset_for_user(user: User | AnonymousUser, pk: int) -> Dataset:
    """The dataset. Raises Http404."""
    dataset = datasets_for(user).select_related("owner", "project").filter(pk=pk).first()
    if dataset is None:
        raise Http404(_("There is no such dataset."))
    return dataset


def get_version(dataset: Dataset, number: int | None) -> DatasetVersion | None:
    """A version of a dataset that the user may see, the newest by default. Raises Http404."""
    ready = dataset.versions.filter(state=DatasetVersion.State.READY).order_by("-number")
    if number is None:
        return ready.first()
    version = ready.filter(number=number).first()
    if version is None:
        raise Http404(
            _("%(dataset)s has no version %(number)s.") % {"dataset": dataset, "number": number}
        )
    return version


def get_version_for_user(user: User | AnonymousUser, key: str) -> DatasetVersion:
    """A version that runs may use, by its id. Raises Http404 when the user may not see it."""
    try:
        pk = UUID(key)
    except ValueError:
        raise Http404(_("There is no such dataset version.")) from None
    ready = DatasetVersion.objects.filter(state=DatasetVersion.State.READY)
    seen = ready.filter(dataset__in=datasets_for(user)).select_related("dataset__project")
    version = seen.filter(pk=pk).first()
    if version is None:
        raise Http404(_("There is no such dataset version."))
    return version


def own_imports(user: User) -> QuerySet[DatasetImport]:
    """Imports that the user may change: theirs, and all of projects whose datasets they change."""
    return DatasetImport.objects.filter(
        Q(owner=user, project__in=projects_where(user, Right.ADD_DATASETS))
        | Q(project__in=projects_where(user, Right.CHANGE_DATASETS))
    )


def imports_for(user: User) -> QuerySet[DatasetImport]:
    """Imports that the user may see: those that they may change, and those that are done."""
    seen = projects_where(user, Right.VIEW)
    return DatasetImport.objects.filter(
        Q(owner=user, project__in=seen)
        | Q(state=DatasetImport.State.DONE, project__in=seen)
        | Q(project__in=projects_where(user, Right.CHANGE_DATASETS))
    )


def get_import_for_user(user: User, pk: UUID) -> DatasetImport:
    """The import. Raises Http404."""
    return _get(imports_for(user), pk)


def get_own_import(user: User, pk: UUID) -> DatasetImport:
    """The import, to change it. Raises Http404, or PermissionDenied, with who can."""
    job = _get(imports_for(user), pk)
    if own_imports(user).filter(pk=pk).exists():
        return job
    if job.owner_id == user.pk:
        raise PermissionDenied(
            _("You may not add datasets to %(project)s any more. Ask %(who)s.")
            % {"project": job.project, "who": who_may(Right.ADD_DATASETS, job.project)}
        )
    raise PermissionDenied(
        _("%(owner)s uploaded %(file)s; only they or %(who)s change it.")
        % {
            "owner": job.owner,
            "file": job.file_name,
            "who": who_may(Right.CHANGE_DATASETS, job.project),
        }
    )


def _get(imports: QuerySet[DatasetImport], pk: UUID) -> DatasetImport:
    """One of the imports. Raises Http404."""
    job = imports.select_related("owner", "project", "version__dataset").filter(pk=pk).first()
    if job is None:
        raise Http404(_("There is no such import."))
    return job


def may_replace(user: User, name: str, project: Project | None = None) -> bool:
    """Whether the user may add a version under a name that may be taken in the project."""
    project = project or find_upload_project(user)
    if project is None:
        return False
    if may(user, Right.CHANGE_DATASETS, project):
        return True
    taken = Dataset.objects.filter(project=project, name=name)
    return may(user, Right.ADD_DATASETS, project) and all(d.owner_id == user.pk for d in taken)


def why_not_replace(project: Project) -> str:
    """The sentence for a name that is somebody else's in the project."""
    text = _("Somebody else owns a dataset of that name in %(project)s; choose another.")
    return text % {"project": project}


def upload_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """Projects to which the user may add datasets."""
    return projects_where(user, Right.ADD_DATASETS)


def find_upload_project(user: User, projects: Sequence[Project] | None = None) -> Project | None:
    """Where an upload goes when nobody says: the last one's project, else the first by name.

    `projects` are those to which the user may add, where the caller has them already.
    """
    found = list(upload_projects(user)) if projects is None else projects
    imports = DatasetImport.objects.filter(owner=user, project__in=found).order_by("-created_at")
    last = imports.values_list("project_id", flat=True).first() if len(found) > 1 else None
    return next((project for project in found if project.pk == last), next(iter(found), None))


def refuse_without_upload(user: User) -> None:
    """Raise PermissionDenied, with who can, for somebody who may add datasets nowhere."""
    if upload_projects(user).exists():
        return
    project = projects_where(user, Right.VIEW).filter(archived_at=None).first()
    if project is None:
        raise PermissionDenied(
            _("You are in no project that is open; ask somebody who runs this installation.")
        )
    raise PermissionDenied(
        _("Your role adds no datasets. Ask %(who)s.")
        % {"who": who_may(Right.ADD_DATASETS, project)}
    )
