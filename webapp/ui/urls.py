"""Addresses of what belongs to no one page."""

from __future__ import annotations

from django.urls import path

from webapp.ui.views.language import language, texts
from webapp.ui.views.model_progress import model_progress
from webapp.ui.views.styleguide import styleguide

app_name = "ui"
urlpatterns = [
    path("language/", language, name="language"),
    path("texts.js", texts, name="texts"),
    path("model-progress/", model_progress, name="model_progress"),
    path("styleguide/", styleguide, name="styleguide"),
]
