"""Addresses of sign-in links; allauth lists the rest."""

from __future__ import annotations

from django.urls import path

from webapp.accounts.views.login_link import login_link

app_name = "accounts"
urlpatterns = [path("link/<str:token>/", login_link, name="login_link")]
