"""Who may see and who may change datasets: the only way in which a view gets one.

Everybody who is signed in sees all datasets, as with runs; an import belongs to who uploaded it.
"""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from webapp.accounts.models import User
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion


def datasets_for(user: User) -> QuerySet[Dataset]:
    """Datasets that the user may see."""
    return Dataset.objects.all() if user.is_active else Dataset.objects.none()


def get_dataset_for_user(user: User, pk: int) -> Dataset:
    """The dataset. Raises Http404."""
    dataset = datasets_for(user).select_related("owner").filter(pk=pk).first()
    if dataset is None:
        raise Http404("There is no such dataset.")
    return dataset


def get_version(dataset: Dataset, number: int | None) -> DatasetVersion | None:
    """A version of a dataset that the user may see, the newest by default. Raises Http404."""
    ready = dataset.versions.filter(state=DatasetVersion.State.READY).order_by("-number")
    if number is None:
        return ready.first()
    version = ready.filter(number=number).first()
    if version is None:
        raise Http404(f"{dataset} has no version {number}.")
    return version


def get_import_for_user(user: User, pk: UUID) -> DatasetImport:
    """The import. Raises Http404."""
    job = (
        DatasetImport.objects.select_related("owner", "version__dataset").filter(pk=pk).first()
        if user.is_active
        else None
    )
    if job is None:
        raise Http404("There is no such import.")
    return job


def get_own_import(user: User, pk: UUID) -> DatasetImport:
    """The import, to change it. Raises PermissionDenied when it is somebody else's."""
    job = get_import_for_user(user, pk)
    if job.owner_id != user.pk and not user.is_staff:
        raise PermissionDenied(f"{job.owner} uploaded this file; only they or staff import it.")
    return job


def may_replace(user: User, name: str) -> bool:
    """Whether the user may add a version under a name that may be taken."""
    owner_ids = Dataset.objects.filter(name=name).values_list("owner_id", flat=True)
    return user.is_staff or all(owner_id == user.pk for owner_id in owner_ids)
