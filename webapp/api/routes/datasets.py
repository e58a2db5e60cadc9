"""Read datasets, their versions and records."""

from __future__ import annotations

from typing import Annotated, Literal

from django.db.models import Prefetch
from django.http import Http404, HttpRequest
from ninja import Path, Query, Router

from webapp.api.auth import BearerToken, user_of
from webapp.api.outputs.datasets import (
    DatasetOut,
    DatasetPage,
    RecordPage,
    dataset_out,
    record_out,
    version_out,
)
from webapp.api.params import LARGEST, LARGEST_ID, Cursor, Limit, Text
from webapp.api.scopes import Scope
from webapp.datasets.access import datasets_for, get_dataset_for_user, get_version
from webapp.datasets.models import DatasetVersion

router = Router(tags=["Datasets"], auth=BearerToken(Scope.READ))
DatasetId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="Id of the dataset.")]
READY = DatasetVersion.objects.filter(state=DatasetVersion.State.READY).order_by("-number")


@router.get(
    "/datasets", response=DatasetPage, operation_id="list_datasets", summary="List datasets"
)
def list_datasets(
    request: HttpRequest,
    q: Annotated[Text, Query("", description="Words of the name.")] = "",
    project: Annotated[Text, Query("", description="Slug of the project.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DatasetPage:
    """Datasets that you may see with their usable versions, the newest first."""
    datasets = datasets_for(user_of(request)).filter(versions__state="ready").distinct()
    if q:
        datasets = datasets.filter(name__icontains=q)
    if project:
        datasets = datasets.filter(project__slug=project)
    if cursor is not None:
        datasets = datasets.filter(pk__lt=cursor)
    ready = Prefetch("versions", queryset=READY.all(), to_attr="ready")
    datasets = datasets.select_related("owner", "project").prefetch_related(ready)
    found = list(datasets.order_by("-pk")[: limit + 1])
    following = found[limit - 1].pk if len(found) > limit else None
    items = [dataset_out(dataset, getattr(dataset, "ready")) for dataset in found[:limit]]  # noqa: B009 - to_attr
    return DatasetPage(items=items, next_cursor=following)


@router.get(
    "/datasets/{dataset}", response=DatasetOut, operation_id="get_dataset", summary="Get a dataset"
)
def get_dataset(request: HttpRequest, dataset: DatasetId) -> DatasetOut:
    """A dataset with its usable versions, the newest first."""
    found = get_dataset_for_user(user_of(request), dataset)
    return dataset_out(found, list(READY.filter(dataset=found)))


@router.get(
    "/datasets/{dataset}/records",
    response=RecordPage,
    operation_id="list_records",
    summary="Read records",
)
def list_records(
    request: HttpRequest,
    dataset: DatasetId,
    version: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Number; the newest when left out.")
    ] = None,
    split: Annotated[Literal["", "train", "held_out"], Query(description="Of one side.")] = "",
    q: Annotated[Text, Query("", description="Words that a record holds.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RecordPage:
    """Records of one version in their order."""
    found = get_version(get_dataset_for_user(user_of(request), dataset), version)
    if found is None:
        raise Http404("The dataset has no version that is ready.")
    records = found.records.filter(index__gte=cursor or 0).order_by("index")
    if split:
        records = records.filter(split=split)
    if q:
        records = records.filter(payload__icontains=q)
    rows = list(records[: limit + 1])
    return RecordPage(
        version=version_out(found),
        items=[record_out(row) for row in rows[:limit]],
        next_cursor=rows[limit].index if len(rows) > limit else None,
    )
