"""Who may see and who may change datasets: the only way in which a view gets one.

Everybody who is signed in sees all datasets, as with runs. An import is only for who uploaded it
and for staff, until it is a version of a dataset; for others it does not exist.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet
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


def own_imports(user: User) -> QuerySet[DatasetImport]:
    """Imports that the user may change: theirs, and all for staff."""
    if not user.is_active:
        return DatasetImport.objects.none()
    return DatasetImport.objects.all() if user.is_staff else user.imports.all()


def imports_for(user: User) -> QuerySet[DatasetImport]:
    """Imports that the user may see: those that they may change, and those that are done."""
    if user.is_staff or not user.is_active:
        return own_imports(user)
    return DatasetImport.objects.filter(Q(owner=user) | Q(state=DatasetImport.State.DONE))


def get_import_for_user(user: User, pk: UUID) -> DatasetImport:
    """The import. Raises Http404."""
    return _get(imports_for(user), pk)


def get_own_import(user: User, pk: UUID) -> DatasetImport:
    """The import, to change it. Raises Http404."""
    return _get(own_imports(user), pk)


def _get(imports: QuerySet[DatasetImport], pk: UUID) -> DatasetImport:
    """One of the imports. Raises Http404."""
    job = imports.select_related("owner", "version__dataset").filter(pk=pk).first()
    if job is None:
        raise Http404("There is no such import.")
    return job


def may_replace(user: User, name: str) -> bool:
    """Whether the user may add a version under a name that may be taken."""
    owner_ids = Dataset.objects.filter(name=name).values_list("owner_id", flat=True)
    return user.is_staff or all(owner_id == user.pk for owner_id in owner_ids)
