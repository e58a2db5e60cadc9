"""Addresses of steps under glass."""

from __future__ import annotations

from django.urls import path

from webapp.glass.views import changes, detail
from webapp.glass.views.index import index

app_name = "glass"
urlpatterns = [
    path("", index, name="index"),
    path("<uuid:glass_id>/", detail.detail, name="detail"),
    path("<uuid:glass_id>/live/", detail.live, name="live"),
    path("<uuid:glass_id>/tokens/<int:place>/", detail.tokens, name="tokens"),
    path("<uuid:glass_id>/result.json", detail.result, name="result"),
    path("<uuid:glass_id>/cancel/", changes.cancel, name="cancel"),
    path("<uuid:glass_id>/delete/", changes.delete, name="delete"),
]
