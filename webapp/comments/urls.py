"""Addresses of comments; the tab of a run's page, and what its forms post to."""

from __future__ import annotations

from django.urls import path

from webapp.comments.views.thread import delete, edit, thread

app_name = "comments"
urlpatterns = [
    path("<int:number>/comments/", thread, name="thread"),
    path("<int:number>/comments/<int:pk>/edit/", edit, name="edit"),
    path("<int:number>/comments/<int:pk>/delete/", delete, name="delete"),
]
