"""Addresses of the tokens page, below the account."""

from __future__ import annotations

from django.urls import path

from webapp.api.views import tokens

app_name = "tokens"
urlpatterns = [
    path("", tokens.tokens, name="index"),
    path("<int:pk>/revoke/", tokens.revoke, name="revoke"),
]
