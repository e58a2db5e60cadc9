"""`GET /api/runs/curves.csv` and `.json`: the points of a chart as a file."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from webapp.metrics.access import get_runs_for_user, signed_in_or_401
from webapp.metrics.curves import CurveQuery, CurveSet
from webapp.metrics.export import as_csv, as_document
from webapp.metrics.params import BadParameter, parse_query
from webapp.metrics.read import read_curves
from webapp.metrics.views.curves import bad_parameter
from webapp.runs.models import Run


@signed_in_or_401
@require_GET
def curves_csv(request: HttpRequest) -> HttpResponse:
    """One row a point."""
    try:
        query, runs, answer = _read(request)
    except BadParameter as error:
        return bad_parameter(error)
    text = "".join(as_csv(query, answer, runs))
    return _file(text, "text/csv; charset=utf-8", _name(query, runs, "csv"))


@signed_in_or_401
@require_GET
def curves_json(request: HttpRequest) -> HttpResponse:
    """The same with units and meanings."""
    try:
        query, runs, answer = _read(request)
    except BadParameter as error:
        return bad_parameter(error)
    text = json.dumps(as_document(query, answer, runs), allow_nan=False, ensure_ascii=False)
    return _file(text, "application/json", _name(query, runs, "json"))


def _read(request: HttpRequest) -> tuple[CurveQuery, list[Run], CurveSet]:
    """The query, its runs and its answer. Raises BadParameter or Http404."""
    query = parse_query(request.GET)
    runs = get_runs_for_user(request.user, query.run_ids)
    return query, runs, read_curves(query._replace(since=None))


def _name(query: CurveQuery, runs: list[Run], ending: str) -> str:
    """A file name of plain characters."""
    what = query.keys[0] if len(query.keys) == 1 else f"{len(query.keys)}-metrics"
    who = f"run-{runs[0].number}" if len(runs) == 1 else f"{len(runs)}-runs"
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in what)[:80]
    return f"{who}-{plain}.{ending}"


def _file(text: str, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        text,
        content_type=content_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )
