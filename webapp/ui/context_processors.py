"""What every page's frame needs. Called by Django for each rendered template.

It touches no table itself; `standing` asks for the person's projects when a template first does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from webapp.ui.projects import standing_of

THEME_COOKIE = "temper_theme"
THEMES = frozenset({"light", "dark"})


class NavEntry(NamedTuple):
    """One destination in the rail."""

    url_name: str
    """Name of its address."""
    label: str | Promise
    """What people read."""
    icon: str
    """Icon in front of the label."""
    keys: str
    """Keys that lead there."""


NAVIGATION = (
    NavEntry("home", _("Home"), "home", "g h"),
    NavEntry("runs:index", _("Runs"), "runs", "g r"),
    NavEntry("runs:launch", _("New run"), "plus", "n"),
    NavEntry("datasets:index", _("Datasets"), "data", "g d"),
    NavEntry("registry:index", _("Models"), "models", "g m"),
    NavEntry("glass:index", _("Glass"), "glass", "g g"),
    NavEntry("workers:index", _("Workers"), "workers", "g w"),
    NavEntry("people:index", _("People"), "people", "g p"),
)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Navigation, where we are in it, the theme that the visitor chose, and the languages."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {
        "navigation": NAVIGATION,
        "standing": standing_of(request),
        "nav_current": current_entry(request),
        "theme": theme if theme in THEMES else "",
        "language": get_language() or settings.LANGUAGE_CODE,
        "languages": settings.LANGUAGES,
    }


def current_entry(request: HttpRequest) -> str:
    """Url name of the entry that the page belongs to; empty outside of all."""
    match = request.resolver_match
    if match is None:
        return ""
    if match.view_name in {entry.url_name for entry in NAVIGATION}:
        return match.view_name
    section = "runs" if match.namespace == "rollouts" else match.namespace
    return next((e.url_name for e in NAVIGATION if e.url_name == f"{section}:index"), "")
