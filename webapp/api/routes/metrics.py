"""Curves for programs: the points that a chart with the same parameters draws."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from ninja import Query, Router
from pydantic import AfterValidator, Field

from training_core.contract.field_errors import FieldError
from webapp.api.auth import BearerToken, user_of
from webapp.api.outputs.results import CurvesOut, MetricList, MetricOut
from webapp.api.params import RunNumber, without_nul
from webapp.api.problems import bad_fields
from webapp.api.scopes import Scope
from webapp.metrics.axes import AxisKind
from webapp.metrics.catalogue import describe, sections
from webapp.metrics.curves import CurveQuery, CurveSet
from webapp.metrics.export import as_csv, as_document
from webapp.metrics.models import MetricSeries
from webapp.metrics.params import BUDGETS, MAX_KEY_CHARS, MAX_KEYS, BadParameter, parse_query
from webapp.metrics.read import read_curves
from webapp.metrics.smoothing import MAX_WEIGHT
from webapp.runs.access import get_run_for_user

router = Router(tags=["Metrics"], auth=BearerToken(Scope.READ))
Keys = Annotated[
    list[Annotated[str, Field(max_length=MAX_KEY_CHARS), AfterValidator(without_nul)]],
    Query(
        min_length=1,
        max_length=MAX_KEYS,
        description="Metric; repeat it for more. `/runs/{number}/metrics` lists them.",
        examples=[["reward"]],
    ),
]
X = Annotated[AxisKind, Query(description="Axis.")]
From = Annotated[
    float | None,
    Query(
        alias="from",
        description="Left end of the window; one point beyond each end comes along.",
        allow_inf_nan=False,
    ),
]
To = Annotated[
    float | None, Query(alias="to", description="Right end of the window.", allow_inf_nan=False)
]
Budget = Annotated[
    int, Query(ge=BUDGETS[0], le=BUDGETS[1], description="Most points of one curve.")
]
Smooth = Annotated[
    float, Query(ge=0, le=MAX_WEIGHT, description="Weight of the past in a smoothed column.")
]
CSV: dict[str, Any] = {
    "responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
}


@router.get(
    "/runs/{number}/metrics",
    response=MetricList,
    operation_id="list_metrics",
    summary="List a run's metrics",
)
def list_metrics(request: HttpRequest, number: RunNumber) -> MetricList:
    """Names, units and meanings of what the run has logged so far."""
    run = get_run_for_user(user_of(request), number)
    keys = MetricSeries.objects.filter(run=run).values_list("key", flat=True)
    items = [
        MetricOut(
            name=key,
            section=section.title,
            unit=metric.unit,
            direction=metric.direction,
            meaning=metric.meaning,
        )
        for section, members in sections(keys)
        for key in members
        for metric in [describe(key)]
    ]
    return MetricList(items=items)


@router.get(
    "/runs/{number}/curves",
    response=CurvesOut,
    operation_id="get_curves",
    summary="Get curves",
)
def get_curves(
    request: HttpRequest,
    number: RunNumber,
    key: Keys,
    x: X = "step",
    start: From = None,
    end: To = None,
    budget: Budget = 1500,
    smooth: Smooth = 0.0,
) -> CurvesOut:
    """Points of metrics over an axis. Up to the budget every point comes back as it was logged;
    beyond it extremes are exact. NaN and infinities are the words `nan`, `inf` and `-inf`."""
    run = get_run_for_user(user_of(request), number)
    query, answer = _read(run.pk, key, x, (start, end), budget, smooth)
    document = as_document(query, answer, [run])
    return CurvesOut.model_validate(document)


@router.get(
    "/runs/{number}/curves.csv",
    operation_id="get_curves_csv",
    summary="Get curves as CSV",
    openapi_extra=CSV,
)
def get_curves_csv(
    request: HttpRequest,
    number: RunNumber,
    key: Keys,
    x: X = "step",
    start: From = None,
    end: To = None,
    budget: Budget = 1500,
    smooth: Smooth = 0.0,
) -> HttpResponse:
    """The same points as a table of run, run_name, metric, step, time and value."""
    run = get_run_for_user(user_of(request), number)
    query, answer = _read(run.pk, key, x, (start, end), budget, smooth)
    text = "".join(as_csv(query, answer, [run]))
    return HttpResponse(text, content_type="text/csv; charset=utf-8")


def _read(
    run_id: UUID,
    keys: list[str],
    x: str,
    window: tuple[float | None, float | None],
    budget: int,
    smooth: float,
) -> tuple[CurveQuery, CurveSet]:
    """The question, judged by the rules of the charts, and its answer. Raises Problem 422."""
    params = QueryDict(mutable=True)
    params.setlist("run", [str(run_id)])
    params.setlist("key", keys)
    values = {"x": x, "from": window[0], "to": window[1], "budget": budget, "smooth": smooth}
    params.update({name: str(value) for name, value in values.items() if value is not None})
    try:
        query = parse_query(params)
    except BadParameter as error:
        raise bad_fields([FieldError(error.name, f"{error.message}.")]) from error
    return query, read_curves(query)
