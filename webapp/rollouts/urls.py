"""Addresses of rollouts; the tab itself is `runs:rollouts`."""

from __future__ import annotations

from django.urls import path

from webapp.rollouts.views.browse import index

app_name = "rollouts"
urlpatterns = [path("<int:number>/rollouts/browse/", index, name="index")]
