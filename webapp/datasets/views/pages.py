"""The list of datasets, and one of them with its records."""

from __future__ import annotations

import re

from django.db.models import Count, Prefetch, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from webapp.datasets.access import (
    datasets_for,
    get_dataset_for_user,
    get_version,
    imports_for,
    own_imports,
)
from webapp.datasets.models import DatasetImport, DatasetVersion
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project

PAGE_SIZE = 25
LISTED = 500
SPLITS = ("train", "held_out")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Datasets with their newest version, and the user's imports that are not datasets yet."""
    user = signed_in(request)
    project = current_project(request)
    of_project = {"project": project} if project else {}
    ready = DatasetVersion.objects.filter(state=DatasetVersion.State.READY).order_by("-number")
    datasets = (
        datasets_for(user)
        .select_related("owner", "project")
        .annotate(version_count=Count("versions", filter=Q(versions__state="ready")))
        .filter(version_count__gt=0)
        .filter(**of_project)
        .prefetch_related(Prefetch("versions", queryset=ready, to_attr="ready"))
        .order_by("-created_at")[:LISTED]
    )
    waiting = (
        own_imports(user)
        .filter(**of_project)
        .exclude(state=DatasetImport.State.DONE)
        .select_related("owner")
        .order_by("-created_at")[:20]
    )
    return render(request, "datasets/index.html", {"datasets": datasets, "imports": waiting})


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One version: records page by page, its sides, its imports."""
    user = signed_in(request)
    dataset = get_dataset_for_user(user, pk)
    version = get_version(dataset, _number(request, "version"))
    split = request.GET.get("split", "")
    words = request.GET.get("q", "").strip()[:200].replace("\0", "")
    start = _number(request, "from") or 0
    records = []
    if version is not None:
        found = version.records.filter(index__gte=start).order_by("index")
        if split in SPLITS:
            found = found.filter(split=split)
        if words:
            found = found.filter(payload__icontains=words)
        records = list(found[: PAGE_SIZE + 1])
    imports = imports_for(user).filter(dataset=dataset).select_related("owner", "version")
    context = {
        "dataset": dataset,
        "version": version,
        "versions": dataset.versions.filter(state="ready").order_by("-number"),
        "imports": imports.order_by("-created_at")[:20],
        "records": records[:PAGE_SIZE],
        "next_from": records[PAGE_SIZE].index if len(records) > PAGE_SIZE else None,
        "start": start,
        "split": split if split in SPLITS else "",
        "words": words,
    }
    return render(request, "datasets/detail.html", context)


def _number(request: HttpRequest, name: str) -> int | None:
    """A whole number from the address, or None. Raises Http404 for anything else."""
    text = request.GET.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise Http404(_("%(name)s must be a whole number.") % {"name": name})
    return int(text)
