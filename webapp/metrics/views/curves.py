"""`GET /api/runs/curves` and the list of what a run has: the data behind every chart.

Called by `static/js/charts/`. A whole curve carries an ETag (a finished run costs one small query);
what a cursor asks for is never cached.
"""

from __future__ import annotations

import hashlib
import json
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response
from django.utils.translation import get_language
from django.views.decorators.http import require_GET

from webapp.metrics import wire
from webapp.metrics.access import get_runs_for_user, signed_in_or_401
from webapp.metrics.catalogue import sections
from webapp.metrics.curves import CurveQuery
from webapp.metrics.marks import marks_of
from webapp.metrics.models import MetricHead, MetricSeries
from webapp.metrics.params import BadParameter, parse_query
from webapp.metrics.read import read_curves
from webapp.metrics.snapshot import load_versions


@signed_in_or_401
@require_GET
def curves(request: HttpRequest) -> HttpResponse:
    """Curves of runs × metrics, thinned to the budget; after a cursor only what is new."""
    try:
        query = parse_query(request.GET)
    except BadParameter as error:
        return bad_parameter(error)
    get_runs_for_user(request.user, query.run_ids)
    etag = _etag(request, query)
    if query.since is None:
        unchanged = get_conditional_response(request, etag=etag)
        if unchanged is not None:
            return unchanged
    response = json_response(wire.encode(query, read_curves(query)))
    if query.since is None:
        response["ETag"] = etag
        response["Cache-Control"] = "private, no-cache"
    else:
        response["Cache-Control"] = "no-store"
    return response


@signed_in_or_401
@require_GET
def keys(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The metrics of a run in their sections, and the markers over them."""
    (run,) = get_runs_for_user(request.user, [run_id])
    rewritten = dict(MetricSeries.objects.filter(run=run).values_list("key", "rewritten"))
    head = MetricHead.objects.filter(pk=run.pk).first()
    response = json_response(
        {
            "run": {
                "id": str(run.pk),
                "number": run.number,
                "name": run.name,
                "state": run.state,
                "is_terminal": run.is_terminal,
            },
            "sections": [
                {
                    "slug": section.slug,
                    "title": section.title,
                    "keys": [
                        {"key": key, "rewritten": rewritten[key], **wire.metric_words(key)}
                        for key in members
                    ],
                }
                for section, members in sections(rewritten)
            ],
            "refused": head.refused if head else 0,
            "marks": marks_of(run),
        }
    )
    response["Cache-Control"] = "no-store"
    return response


def json_response(document: object) -> HttpResponse:
    """Strict JSON: a NaN that slipped through is an error here, not in the browser."""
    return HttpResponse(
        json.dumps(document, allow_nan=False, separators=(",", ":")),
        content_type="application/json",
    )


def bad_parameter(error: BadParameter) -> HttpResponse:
    """What is wrong with which parameter."""
    document = {"error": {"field": error.name, "message": error.message}}
    return JsonResponse(document, status=400)


def _etag(request: HttpRequest, query: CurveQuery) -> str:
    """Changes when a run's metrics, the question, its language or the answer's form change."""
    versions = load_versions(query.run_ids)
    asked = request.META.get("QUERY_STRING", "")
    facts = [wire.VERSION, get_language(), asked, *versions.values()]
    return f'"{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}"'
