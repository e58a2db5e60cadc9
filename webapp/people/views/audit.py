"""The audit log: of one project for its admins, of the installation for superusers, also as CSV."""

from __future__ import annotations

import csv

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.models import Project
from webapp.audit.actions import ACTIONS
from webapp.people.access import get_managed_project, refuse_all_but_superusers
from webapp.people.audit_log import MOST_ROWS, AuditQuery, csv_rows, read_audit
from webapp.ui.people import signed_in


@require_safe
def project_audit(request: HttpRequest, slug: str) -> HttpResponse:
    """What was done in one project."""
    return _page(request, get_managed_project(request.user, slug))


@require_safe
def project_audit_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """The same as a file."""
    return _file(request, get_managed_project(request.user, slug))


@require_safe
def whole_audit(request: HttpRequest) -> HttpResponse:
    """What was done in all projects, and who signed in."""
    refuse_all_but_superusers(signed_in(request))
    return _page(request, None)


@require_safe
def whole_audit_csv(request: HttpRequest) -> HttpResponse:
    """The same as a file."""
    refuse_all_but_superusers(signed_in(request))
    return _file(request, None)


def _page(request: HttpRequest, project: Project | None) -> HttpResponse:
    """One page of the log."""
    page = read_audit(AuditQuery.from_address(request.GET.dict()), project)
    context = {
        "project": project,
        "tab": "audit",
        "may_manage": True,
        "page": page,
        "actions": ACTIONS,
        "most_rows": MOST_ROWS,
    }
    name = "people/audit.html" if project else "people/whole_audit.html"
    return render(request, name, context)


def _file(request: HttpRequest, project: Project | None) -> HttpResponse:
    """The newest entries that fit, up to MOST_ROWS; the days of the filter give the rest."""
    name = f"audit-{project.slug}.csv" if project else "audit.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    response = HttpResponse(content_type="text/csv; charset=utf-8", headers=headers)
    query = AuditQuery.from_address(request.GET.dict())
    csv.writer(response).writerows(csv_rows(query, project))
    return response
