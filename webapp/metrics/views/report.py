"""`GET /runs/NUMBER/report.html`: one run as a file that opens without a network.

The rows are read before the answer starts; the figures are made one by one while it is sent, each
in a thread, so that neither memory nor the event loop carries all of them at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from html import escape
from typing import Any, NamedTuple

import yaml
from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import get_language, override
from django.views.decorators.http import require_GET

from webapp.metrics.catalogue import Section, describe, meaning_of, sections
from webapp.metrics.curves import Curve, CurveQuery
from webapp.metrics.figures import caption, figure_html, plotly_js
from webapp.metrics.marks import evaluation_intervals
from webapp.metrics.models import MetricSeries
from webapp.metrics.read import read_curves
from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run
from webapp.ui.wording import state_look

WEIGHT = 0.6
MAX_FIGURES = 120


class Report(NamedTuple):
    """Everything the file is made of."""

    head: str
    foot: str
    sections: list[tuple[Section, list[Curve]]]
    intervals: dict[str, list[dict[str, Any]]]
    query: CurveQuery
    language: str | None
    """Of the person who asked: the figures are made in other threads."""


@require_GET
async def report(request: HttpRequest, number: int) -> StreamingHttpResponse:
    """The report as a download."""
    content = await sync_to_async(_collect)(request, number)
    return StreamingHttpResponse(
        _pieces(content),
        content_type="text/html; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="temper-run-{number}.html"',
            "Cache-Control": "no-store",
        },
    )


def _collect(request: HttpRequest, number: int) -> Report:
    """Read all rows."""
    run = get_run_for_user(request.user, number)
    keys = MetricSeries.objects.filter(run=run).values_list("key", flat=True)
    found = sections(keys)
    chosen = [key for _, members in found for key in members][:MAX_FIGURES]
    query = CurveQuery((run.pk,), tuple(chosen), weight=WEIGHT)
    curves = {curve.key: curve for curve in read_curves(query).curves} if chosen else {}
    intervals = evaluation_intervals(run)
    filled = [(s, [curves[key] for key in members if key in curves]) for s, members in found]
    head, foot = _frame(run, intervals, has_curves=bool(curves))
    content = Report(head, foot, filled, intervals, query, get_language())
    connections.close_all()  # back to the pool while the figures are made
    return content


def _frame(run: Run, intervals: dict[str, list[dict[str, Any]]], *, has_curves: bool) -> list[str]:
    """What stands before and after the figures."""
    context = {
        "run": run,
        "state": state_look(run.state).label,
        "now": timezone.now(),
        "plotly_js": plotly_js(),
        "evaluations": intervals.get("eval/pass@1", []),
        "has_curves": has_curves,
        "spec_yaml": yaml.safe_dump(run.spec, sort_keys=False, allow_unicode=True),
    }
    return render_to_string("metrics/report.html", context).split("<!-- figures -->")


async def _pieces(content: Report) -> AsyncIterator[str]:
    """The file, piece by piece."""
    yield content.head
    for section, curves in content.sections:
        if curves:
            yield f"<h2>{escape(section.title)}</h2>\n"
        for curve in curves:
            yield await sync_to_async(_figure, thread_sensitive=False)(content, curve)
    yield content.foot


def _figure(content: Report, curve: Curve) -> str:
    """One figure with its caption."""
    with override(content.language):
        words = " ".join(filter(None, [meaning_of(describe(curve.key)), f"({caption(curve)})"]))
        figure = figure_html(curve, content.query, content.intervals.get(curve.key, []))
    return f"<figure>{figure}<figcaption>{escape(words)}</figcaption></figure>\n"
