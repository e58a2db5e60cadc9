"""Every address of the site; each app lists its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="runs:index"), name="home"),
    path("accounts/", include("webapp.accounts.urls")),
    path("accounts/", include("allauth.account.urls")),
    path("runs/", include("webapp.runs.urls")),
    path("runs/", include("webapp.rollouts.urls")),
    path("", include("webapp.metrics.urls")),
    path("datasets/", include("webapp.datasets.urls")),
    path("workers/", include("webapp.workers_page.urls")),
    path("ui/", include("webapp.ui.urls")),
    path("admin/", admin.site.urls),
]
