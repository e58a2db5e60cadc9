"""Addresses of curves, their exports, the report and the live stream."""

from __future__ import annotations

from django.urls import path

from webapp.metrics.views import curves, exports, report, stream

app_name = "metrics"
urlpatterns = [
    path("api/runs/curves", curves.curves, name="curves"),
    path("api/runs/curves.csv", exports.curves_csv, name="csv"),
    path("api/runs/curves.json", exports.curves_json, name="json"),
    path("api/runs/<uuid:run_id>/keys", curves.keys, name="keys"),
    path("runs/<int:number>/report.html", report.report, name="report"),
    path("live/events", stream.events, name="events"),
    path("live/news", stream.news, name="news"),
]
