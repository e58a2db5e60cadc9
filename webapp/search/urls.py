"""Address of the search."""

from __future__ import annotations

from django.urls import path

from webapp.search.views.search import search

app_name = "search"
urlpatterns = [path("", search, name="search")]
