"""Addresses of webhooks, below the account."""

from __future__ import annotations

from django.urls import path

from webapp.webhooks.views import endpoints

app_name = "webhooks"
urlpatterns = [
    path("", endpoints.index, name="index"),
    path("<int:pk>/", endpoints.detail, name="detail"),
    path("<int:pk>/delete/", endpoints.confirm_delete, name="delete"),
    path("<int:pk>/<slug:deed>/do/", endpoints.act, name="act"),
]
