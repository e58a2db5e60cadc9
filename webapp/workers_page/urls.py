"""Addresses of the workers page."""

from __future__ import annotations

from django.urls import path

from webapp.workers_page.views.index import index

app_name = "workers"
urlpatterns = [path("", index, name="index")]
